"""Our own rules for JavaScript, TypeScript, Go and shell.

Patterns on single lines report what one line shows beyond doubt: a shell or an evaluator given
something that is no literal, a certificate check switched off.  ``scripts`` finds SQL that is built
over several lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from midstream.guard.findings import Finding, Level
from midstream.guard.scripts import ScriptReader
from midstream.guard.secrets import mask


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    message: str
    idiom: str
    pattern: re.Pattern[str]


_VERBS: Final = (
    r"(?i:select\s[^`\"]{0,200}?\sfrom\s|insert\s+into\s|update\s\S+\sset\s|delete\s+from\s"
    r"|drop\s+table\s)"
)
_FILLED: Final = r"\$(?:[{(]|[A-Za-z_0-9@*])"
"""A variable, an argument or a command's output in shell text."""
_PARAMETERS: Final = "pass the values as query parameters instead of building the SQL string"
_SQL: Final = "SQL is built from parts that are not constants"

_SCRIPT: Final = (
    _Rule(
        "js-shell",
        "A shell command is built from parts that are not constants",
        "use execFile or spawn with a list of arguments",
        re.compile(
            r"(?:\bchild_process\.|\bcp\.|(?<![\w.$]))exec(?:Sync)?\(\s*"
            r"(?:`[^`]*\$\{|([\"'])(?:(?!\1).)*\1\s*\+\s*[A-Za-z_$(])"
        ),
    ),
    _Rule(
        "js-eval",
        "Text that is not a literal is evaluated",
        "parse the value explicitly, for example with JSON.parse",
        re.compile(
            r"(?<![\w.$])eval\(\s*(?!\s*[\"'][^\"']*[\"']\s*\)|`[^`$]*`\s*\)|\))"
            r"|\bnew\s+Function\(\s*(?![\"'][^\"']*[\"']\s*\)|\))"
        ),
    ),
    _Rule(
        "js-tls",
        "Certificate verification is switched off",
        "keep certificate verification on",
        re.compile(
            r"\brejectUnauthorized\s*:\s*false\b|NODE_TLS_REJECT_UNAUTHORIZED['\"\]]*\s*=\s*['\"]?0"
        ),
    ),
)
_GO: Final = (
    _Rule(
        "go-shell",
        "A shell is given text that is not a constant",
        "use exec.Command with the program and its arguments",
        re.compile(
            r"exec\.Command(?:Context)?\((?:\s*ctx\s*,)?\s*\"(?:/bin/)?(?:ba|z)?sh\"\s*,\s*\"-l?c\"\s*,"
            r"\s*(?!\"[^\"]*\"\s*\)|`[^`]*`\s*\))"
        ),
    ),
    _Rule(
        "go-tls",
        "Certificate verification is switched off",
        "keep certificate verification on",
        re.compile(r"\bInsecureSkipVerify\s*:\s*true\b"),
    ),
)
_SHELL: Final = (
    _Rule(
        "sh-eval",
        "Text that is not a literal is evaluated",
        "call the command directly, with its arguments in an array",
        re.compile(
            r"(?:^|[;&|]|\bthen\b|\bdo\b)\s*eval\s+[^#\n]*\$(?!\(\s*(?:ssh-agent|dircolors))"
        ),
    ),
    _Rule(
        "sh-shell",
        "A shell is given text that is not a constant",
        'pass the values as arguments: sh -c \'… "$1"\' sh "$value"',
        re.compile(
            r"(?<![\w.-])(?:ba|z|da|k)?sh\s+(?:-[a-z]+\s+)*-[a-z]*c\s+(?:\"(?:[^\"\\]|\\.)*?"
            + _FILLED
            + r"|\$[{A-Za-z_0-9@*])"
        ),
    ),
    _Rule(
        "sh-sql",
        "SQL is built from parts that are not constants",
        "pass the values as variables of the database client",
        re.compile(
            r"\b(?:psql|mysql|mariadb|sqlite3|mysqlsh|sqlcmd|clickhouse-client|duckdb)\b[^#\n]*?\""
            r"(?:[^\"\\]|\\.){0,200}?" + _VERBS + r"(?:[^\"\\]|\\.){0,400}?" + _FILLED,
        ),
    ),
    _Rule(
        "sh-pipe",
        "A script from the network is run unseen",
        "download the script, verify its checksum, then run it",
        re.compile(r"\b(?:curl|wget)\b[^|#\n]*https?:[^|#\n]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"),
    ),
)

_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_PACKS: Final = {
    **dict.fromkeys(_SCRIPTS, _SCRIPT),
    ".go": _GO,
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh"), _SHELL),
}
_COMMENT: Final = {".go": "//", ".sh": "#", ".bash": "#", ".zsh": "#", ".ksh": "#"}
_MAX_LINE_LENGTH: Final = 4_000
"""Characters of a line that are searched."""

_QUERIES: Final = {**dict.fromkeys(_SCRIPTS, "js-sql"), ".go": "go-sql"}

RULES: Final = (
    "js-sql",
    "go-sql",
    *(rule.name for pack in (_SCRIPT, _GO, _SHELL) for rule in pack),
)
"""Names of all rules of the pack."""


def has_pack(path: str) -> bool:
    """Whether there are rules for this file."""
    return PurePosixPath(path).suffix.lower() in _PACKS


class PackReader:
    """Scans a file line by line; finds nothing in files without rules.

    Args:
        path: The file's name.
        runs: Also report where a query is run that was built above.
    """

    def __init__(self, path: str, *, runs: bool = False) -> None:
        suffix = PurePosixPath(path).suffix.lower()
        self._rules = _PACKS.get(suffix, ())
        self._comment = _COMMENT.get(suffix, "//")
        self._query_rule = _QUERIES.get(suffix, "")
        self._queries = ScriptReader(go=suffix == ".go", runs=runs) if self._query_rule else None
        self._number = 0

    def feed(self, lines: Sequence[str]) -> list[Finding]:
        """Take the next lines; returns findings, numbered from the first line fed.

        The evidence of a finding is the line that completes it.
        """
        found: list[Finding] = []
        for line in lines if self._rules else ():
            found += self._feed(line)
            self._number += 1
        return found

    def _feed(self, line: str) -> Iterator[Finding]:
        number, evidence = self._number, line.strip()[:_MAX_LINE_LENGTH]
        for item in self._queries.feed(line) if self._queries is not None else ():
            yield Finding(
                self._query_rule,
                _SQL,
                item.line,
                number + 1,
                item.level,
                _PARAMETERS,
                mask(evidence),
            )
        if evidence.startswith(self._comment):
            return
        for rule in self._rules:
            if rule.pattern.search(line[:_MAX_LINE_LENGTH]):
                yield Finding(
                    rule.name,
                    rule.message,
                    number,
                    number + 1,
                    Level.HALT,
                    rule.idiom,
                    mask(evidence),
                )
