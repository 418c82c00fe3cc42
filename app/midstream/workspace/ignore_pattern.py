"""One line of an ignore file, compiled to a regular expression (gitignore(5), "PATTERN FORMAT").

Git asks for each folder of a path in turn, so a pattern here matches a path itself and never what
lies below it.
Names and patterns are bytes read as Latin-1, because git compares bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class IgnorePattern:
    """A compiled line."""

    expression: re.Pattern[str]
    anchored: bool
    """Matched against the path from the ignore file's folder, not against the name alone."""
    folders_only: bool
    negated: bool

    def matches(self, path: str, folder: bool) -> bool:
        """Whether ``path``, relative to the ignore file's folder, is meant."""
        if self.folders_only and not folder:
            return False
        text = path if self.anchored else path.rpartition("/")[2]
        return self.expression.fullmatch(text) is not None


def parse_line(line: str) -> IgnorePattern | None:
    """Compile one line without its line end; None for comments, blank lines and patterns that match
    nothing.
    """
    if line.startswith("#"):
        return None
    stripped = line.rstrip(" ")
    # A backslash keeps the space after it.
    if stripped != line and (len(stripped) - len(stripped.rstrip("\\"))) % 2:
        stripped += " "
    negated = stripped.startswith("!")
    body = stripped[1:] if negated else stripped
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    body = body.removeprefix("/")
    if not body:
        return None
    try:
        expression = re.compile(_translate(body, anchored), re.DOTALL | re.ASCII)
    except (ValueError, re.error):
        return None
    return IgnorePattern(expression, anchored, folders_only, negated)


def _translate(glob: str, anchored: bool) -> str:
    """Regular expression of git's wildmatch; ValueError for a bracket that is not closed."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            end = at
            while glob[end : end + 1] == "*":
                end += 1
            alone = (at == 0 or glob[at - 1] == "/") and glob[end : end + 1] in {"", "/"}
            if anchored and end - at == 2 and alone:
                if end == len(glob):
                    out.append(".*")
                    at = end
                else:
                    out.append("(?:.*/)?")
                    at = end + 1
            else:
                out.append("[^/]*")
                at = end
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[":
            text, at = _bracket(glob, at + 1)
            out.append(text)
        elif char == "\\":
            if at + 1 == len(glob):
                raise ValueError("trailing backslash")
            out.append(re.escape(glob[at + 1]))
            at += 2
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _bracket(glob: str, at: int) -> tuple[str, int]:
    """The character class that begins behind ``[``, and the position behind its ``]``."""
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    items: list[str] = []
    first = True
    while first or glob[at : at + 1] != "]":
        first = False
        if glob.startswith("[:", at) and (end := glob.find(":]", at)) > 0:
            items.append(_POSIX_CLASSES.get(glob[at + 2 : end], ""))
            at = end + 2
            continue
        low, at = _literal(glob, at)
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in {"", "]"}:
            high, at = _literal(glob, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    content = "".join(items)
    if not content:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{content}]", at + 1


def _literal(glob: str, at: int) -> tuple[str, int]:
    if glob[at : at + 1] == "\\":
        at += 1
    if at >= len(glob):
        raise ValueError("bracket not closed")
    return glob[at], at + 1
