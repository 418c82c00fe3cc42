"""Our own rules for JavaScript, TypeScript, Go and shell: patterns on single finished lines.

They name only what one line shows beyond doubt: SQL glued from parts, a shell or an evaluator fed
with something that is no literal, a certificate check switched off. No data flow, no syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from midstream.guard.findings import Finding, Level
from midstream.guard.secrets import mask


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    message: str
    idiom: str
    pattern: re.Pattern[str]


_VERBS: Final = (
    r"(?i:select\s[^`\"']*?\sfrom\s|insert\s+into\s|update\s\S+\sset\s|delete\s+from\s"
    r"|drop\s+table\s)"
)
_PARAMETERS: Final = "pass the values as query parameters instead of building the SQL string"

_SCRIPT: Final = (
    _Rule(
        "js-sql",
        "SQL is built from parts that are not constants",
        _PARAMETERS,
        re.compile(
            r"(?<!sql)(?<!SQL)`\s*" + _VERBS + r"[^`]*\$\{(?!\s*[A-Z0-9_.]+\s*\})"
            r"|([\"'])\s*" + _VERBS + r"(?:(?!\1).)*\1\s*\+\s*(?![A-Z0-9_]+\b)[A-Za-z_$(]",
        ),
    ),
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
        "go-sql",
        "SQL is built from parts that are not constants",
        _PARAMETERS,
        re.compile(
            r"\bSprintf\(\s*[\"`]\s*" + _VERBS + r"[^\"`]*%[-+# 0-9.]*[vsq]"
            r"|([\"`])\s*" + _VERBS + r"(?:(?!\1).)*\1\s*\+\s*[a-z_]",
        ),
    ),
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
        "sh-sql",
        "SQL is built from parts that are not constants",
        "pass the values as variables of the database client",
        re.compile(
            r"\b(?:psql|mysql|mariadb|sqlite3)\b[^#\n]*\"\s*" + _VERBS + r"[^\"]*\$[{A-Za-z_]",
        ),
    ),
    _Rule(
        "sh-pipe",
        "A script from the network is run unseen",
        "download the script, verify its checksum, then run it",
        re.compile(r"\b(?:curl|wget)\b[^|#\n]*https?:[^|#\n]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"),
    ),
)

_PACKS: Final = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), _SCRIPT),
    ".go": _GO,
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh"), _SHELL),
}
_COMMENT: Final = {".go": "//", ".sh": "#", ".bash": "#", ".zsh": "#", ".ksh": "#"}
_LONGEST: Final = 4_000

RULES: Final = tuple(rule.name for pack in (_SCRIPT, _GO, _SHELL) for rule in pack)
"""Names of all rules of the pack."""


def has_pack(path: str) -> bool:
    """Whether there are rules for this file."""
    return PurePosixPath(path).suffix.lower() in _PACKS


def pack_findings(lines: Sequence[str], path: str) -> Iterator[Finding]:
    """Yield the findings on finished lines, in order."""
    suffix = PurePosixPath(path).suffix.lower()
    rules = _PACKS.get(suffix, ())
    comment = _COMMENT.get(suffix, "//")
    for number, line in enumerate(lines) if rules else ():
        if line.lstrip().startswith(comment):
            continue
        for rule in rules:
            if rule.pattern.search(line[:_LONGEST]):
                yield Finding(
                    rule.name,
                    rule.message,
                    number,
                    number + 1,
                    Level.HALT,
                    rule.idiom,
                    mask(line.strip()[:_LONGEST]),
                )
