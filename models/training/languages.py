"""Evaluation sets in other languages: small edits that a program can make and check.

    python -m models.training.languages OUT --repository javascript=PATH ...

reads the newest commit of git repositories, and writes a set of `items` for each of them: rename a
local variable, change a number, a text, a comparison or a truth value, in functions of 4 to 25
lines. Each is unique in its function, so that exactly one answer is right. No such code was ever
trained on, so every repository is held out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Name, Number, Operator, String, Token

_SEED: Final = 7
_EACH: Final = 12
"""Requests of each kind in a set."""
_SHORTEST: Final = 4
_LONGEST: Final = 25
_NAMES: Final = ("current", "found", "amount", "entry", "remaining", "position", "chosen", "limit")
_TEXTS: Final = ("not found", "done", "unknown", "ready")
_COMPARED: Final = {
    "<": "<=",
    ">": ">=",
    "<=": "<",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "===": "!==",
}


@dataclass(frozen=True, slots=True)
class Language:
    """How to find its functions and variables.

    Attributes:
        suffix: of its files.
        function: the first line of a function.
        variable: where a local variable is declared; its name is the last group that matched.
    """

    suffix: str
    function: str
    variable: str


LANGUAGES: Final = {
    "javascript": Language(
        ".js",
        r"^\s*(?:(?:async )?function\b|[\w.]+ = (?:async )?function\b)",
        r"\b(?:const|let|var) (\w+)",
    ),
    "typescript": Language(
        ".ts",
        r"^\s*(?:(?:export |public |private |static |async )*(?:function\b|\w+\([^)]*\)[^;=]*\{$))",
        r"\b(?:const|let|var) (\w+)",
    ),
    "go": Language(".go", r"^func\b", r"\b(\w+) :="),
    "rust": Language(".rs", r"^\s*(?:pub(?:\([a-z]+\))? )?fn\b", r"\blet (?:mut )?(\w+)"),
    "java": Language(
        ".java",
        r"^\s*(?:(?:public|private|protected|static|final) )+[\w<>\[\], ?]+\(",
        r"\b(?:int|long|boolean|String|[A-Z]\w*(?:<[^;=]*>)?) (\w+) =",
    ),
}

Tokens = list[tuple[Token, str]]  # pyright: ignore[reportInvalidTypeForm]
Made = tuple[str, str]
"""A request and the text that it asks for."""


def functions(text: str, name: str) -> Iterator[str]:
    """Yield the functions of a file that are neither short nor long."""
    language = LANGUAGES[name]
    lines = text.splitlines(keepends=True)
    for first, line in enumerate(lines):
        if not re.search(language.function, line):
            continue
        depth = 0
        opened = False
        for last in range(first, min(len(lines), first + _LONGEST)):
            code = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|//.*", "", lines[last])
            depth += code.count("{") - code.count("}")
            opened = opened or "{" in code
            if opened and depth <= 0:
                if last - first + 1 >= _SHORTEST and depth == 0:
                    yield "".join(lines[first : last + 1])
                break


def _replaced(tokens: Tokens, places: set[int], new: str) -> str:
    return "".join(new if at in places else text for at, (_, text) in enumerate(tokens))


def _only(tokens: Tokens, wanted: Callable[[object, str], bool]) -> int | None:
    """Return the place of a token that is wanted and whose text stands nowhere else."""
    places = [number for number, (kind, text) in enumerate(tokens) if wanted(kind, text)]
    texts = [tokens[number][1] for number in places]
    single = [number for number in places if texts.count(tokens[number][1]) == 1]
    return single[0] if single else None


def rename(tokens: Tokens, region: str, language: Language, pick: random.Random) -> Made | None:
    """Rename a local variable that is used and is no attribute anywhere."""
    for found in re.finditer(language.variable, region):
        old = found.group(1)
        places = {n for n, (kind, text) in enumerate(tokens) if text == old and kind in Name}
        others = [
            text for kind, text in tokens if kind not in Name and re.search(rf"\b{old}\b", text)
        ]
        marks = {
            tokens[n + step][1].strip()
            for n in places
            for step in (-1, 1)
            if 0 <= n + step < len(tokens)
        }
        if len(old) < 2 or len(places) < 2 or others or marks & {".", ":", "::", "?."}:
            continue
        new = pick.choice([name for name in _NAMES if name not in region])
        asked = pick.choice((f"rename `{old}` to `{new}`", f"call {old} {new} instead"))
        return asked, _replaced(tokens, places, new)
    return None


def number(tokens: Tokens, _: str, __: Language, pick: random.Random) -> Made | None:
    """Change a number."""
    at = _only(tokens, lambda kind, text: kind in Number and text.isdecimal())  # type: ignore[operator]
    if at is None:
        return None
    old = tokens[at][1]
    new = str(int(old) + pick.choice((1, 2, 10)))
    asked = pick.choice((f"use {new} instead of {old}", f"change {old} to {new}"))
    return asked, _replaced(tokens, {at}, new)


def words(tokens: Tokens, region: str, _: Language, pick: random.Random) -> Made | None:
    """Change a text."""
    found = re.findall(r"\"([A-Za-z][\w ]{2,30})\"|'([A-Za-z][\w ]{2,30})'", region)
    texts = ["".join(one) for one in found]
    single = [text for text in texts if region.count(text) == 1]
    if not single or not any(kind in String for kind, _ in tokens):
        return None
    old, new = single[0], pick.choice(_TEXTS)
    asked = pick.choice((f'say "{new}" instead of "{old}"', f'change "{old}" to "{new}"'))
    return asked, region.replace(old, new)


def comparison(tokens: Tokens, region: str, _: Language, __: random.Random) -> Made | None:
    """Change a comparison."""
    places = list(re.finditer(r" (<=|>=|===|==|!=|<|>) ", region))
    single = [m for m in places if sum(p[1] == m[1] for p in places) == 1]
    if not single or not any(kind in Operator for kind, _ in tokens):
        return None
    (old, place), new = (single[0][1], single[0].start(1)), _COMPARED[single[0][1]]
    after = region[:place] + new + region[place + len(old) :]
    return f"use {new} instead of {old}", after


def truth(_: Tokens, region: str, __: Language, ___: random.Random) -> Made | None:
    """Change a truth value."""
    found = re.findall(r"\b(true|false)\b", region)
    single = [value for value in ("true", "false") if found.count(value) == 1]
    if not single:
        return None
    old = single[0]
    new = "false" if old == "true" else "true"
    return f"make it {new} instead of {old}", re.sub(rf"\b{old}\b", new, region)


KINDS: Final = {
    "rename": rename,
    "number": number,
    "text": words,
    "comparison": comparison,
    "truth": truth,
}


def files(repository: Path, suffix: str) -> Iterator[str]:
    """Yield the files of a repository's newest commit."""
    git = ["git", "-C", str(repository)]
    names = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        if name.endswith(suffix) and not name.endswith((".d.ts", ".min.js")):
            shown = subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True, check=False)
            yield shown.stdout.decode(errors="replace")


def make_set(name: str, repository: Path) -> list[dict[str, str]]:
    """Return the rows of a language's set."""
    language, pick = LANGUAGES[name], random.Random(_SEED)
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    found = [one for text in files(repository, language.suffix) for one in functions(text, name)]
    pick.shuffle(found)
    rows: list[dict[str, str]] = []
    for kind, make in KINDS.items():
        count = 0
        for region in found:
            tokens: Tokens = list(lexer.get_tokens(region))
            if any(token in Comment for token, _ in tokens) or not region.isascii():
                continue
            made = make(tokens, region, language, pick)
            if made is not None and made[1] != region:
                rows.append(
                    {
                        "task": kind,
                        "package": repository.parent.name,
                        "instruction": made[0],
                        "region": region,
                        "target": made[1],
                    }
                )
                count += 1
                if count == _EACH:
                    break
    return rows


def main() -> None:
    """Write the sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--repository", nargs="+", required=True, metavar="LANGUAGE=PATH")
    options = parser.parse_args()
    for given in options.repository:
        name, _, path = given.partition("=")
        rows = make_set(name, Path(path))
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (options.out / f"{name}.jsonl").write_text(lines)
        print(f"{name}: {len(rows)} requests")


if __name__ == "__main__":
    main()
