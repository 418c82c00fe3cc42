"""Function-level edits and the subjects of the commits that made them, from git histories.

    PYTHONPATH=app:. python -m models.training.mine_commits --out mined --held-out mined-heldout \
        GITFOLDER=OWNER/NAME ...

A commit counts when it changes one file of Python that is no test (tests, documents and changelogs
may change too), all of it within one function (or one statement or a few neighbours where the
function is long), apart from lines that import. Its subject is the instruction. Merges, reverts,
bots, releases and what leaves the syntax tree as it was are left out, and so is every repository
whose licence at its head is not MIT, BSD, Apache or PSF. Rows carry `score`, a guess how much of
the change follows from subject and region, and `imports`, the lines that the commit added to the
imports of the file.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import re
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from models.training import script_format as fmt

MOST_CHANGED = 16
"""Changed lines of the file."""

LONGEST_REGION = 60
HELD_OUT = frozenset(
    ["flask", "click", "werkzeug", "jinja", "requests", "tornado", "networkx", "pygments", "nltk"]
)
"""Names of repositories that only evaluation sees, those of the generator's sets among them."""

_EXCLUDED = re.compile(
    r"aider|openai-agents|canitedit|quixbugs|human-?eval|mbpp|editeval|codeinstruct", re.I
)
_TEST = re.compile(
    r"(^|/)(tests?|testing|conftest\.py|test_[^/]*|[^/]*_tests?\.py|examples?|docs?|vendor|_vendor)(/|$)|(^|/)(setup|conftest|conf)\.py$"
)
_BOT = re.compile(
    r"\bbot\b|\[bot\]|dependabot|pre-commit-ci|pyup|renovate|weblate|github-actions|zuul|transifex",
    re.I,
)
_DULL = re.compile(
    r"^(merge|revert|bump|release|prepare|version|wip\b|initial|back to dev|import(ed)? translat|"
    r"update (version|changelog|changes|authors|copyright|depend)|cherry|backport|sync |todo|oops|"
    r"temp|tmp)|\b(black|isort|flake8|pep-?8|pyupgrade|ruff|lint(er|ing)?|formatting|reformat|"
    r"whitespace|white space|mypy|pyflakes|pylint|translations?|changelog|copyright|typos?|"
    r"spelling|coding style)\b|^v?\d+\.\d+",
    re.I,
)
_TRIM = [
    (
        re.compile(
            r"^(fix(es|ed)?|closes?d?|refs?|issue|bug|gh)[ :]*#?\d+\s*(--|:|-|,|\.)?\s*", re.I
        ),
        "",
    ),
    (re.compile(r"^\[[^\]]{1,24}\]\s*"), ""),
    (
        re.compile(
            r"^(feat|fix|refactor|perf|chore|style|build|ci|docs|doc|bug|bugfix|enh|mnt|maint|rf|bf|nf)(\([^)]*\))?!?\s*:\s*",
            re.I,
        ),
        "",
    ),
    (re.compile(r"\s*\((GH-|gh-|#|PR ?#?|bpo-)?\d+\)\s*$"), ""),
    (
        re.compile(
            r"[\s,(]*(fix(es|ed)?|closes?d?|resolves?|refs?|see|for|re)?[ :]*((GH|gh)-|#)\d+"
            r"[).\s]*$",
            re.I,
        ),
        "",
    ),
    (re.compile(r"^#\d+\s*[:.,-]*\s*"), ""),
]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMON = frozenset(
    [
        "self",
        "cls",
        "True",
        "False",
        "None",
        "if",
        "else",
        "elif",
        "for",
        "in",
        "not",
        "and",
        "or",
        "is",
        "def",
        "return",
        "raise",
        "try",
        "except",
        "finally",
        "with",
        "as",
        "while",
        "break",
        "continue",
        "pass",
        "lambda",
        "yield",
        "import",
        "from",
        "class",
        "assert",
        "del",
        "global",
        "async",
        "await",
        "len",
        "str",
        "int",
        "float",
        "bool",
        "list",
        "dict",
        "set",
        "tuple",
        "range",
        "isinstance",
        "getattr",
        "hasattr",
        "setattr",
        "type",
        "super",
        "print",
        "open",
        "sorted",
        "min",
        "max",
        "sum",
        "any",
        "all",
        "enumerate",
        "zip",
        "map",
        "filter",
        "iter",
        "next",
        "repr",
        "ValueError",
        "TypeError",
        "KeyError",
        "AttributeError",
        "IndexError",
        "RuntimeError",
        "NotImplementedError",
        "Exception",
        "OSError",
        "get",
        "items",
        "keys",
        "values",
        "append",
        "extend",
        "join",
        "split",
        "strip",
        "format",
        "startswith",
        "endswith",
        "lower",
        "upper",
        "copy",
        "pop",
        "update",
        "add",
        "encode",
        "decode",
        "read",
        "write",
        "close",
        "name",
        "key",
        "value",
        "args",
        "kwargs",
        "error",
        "e",
        "exc",
        "result",
        "data",
        "path",
        "x",
        "i",
        "n",
        "os",
        "sys",
        "re",
        "log",
        "logger",
        "warnings",
        "warn",
        "debug",
        "info",
        "warning",
        "exception",
        "msg",
        "message",
        "utf",
        "bytes",
        "object",
        "property",
        "staticmethod",
        "classmethod",
        "Optional",
        "Any",
    ]
)


@dataclass(slots=True)
class Commit:
    """One commit that may count, with the only source file it changes."""

    sha: str
    subject: str
    path: str


@dataclass(slots=True)
class Row:
    """One edit, in the form of the shards."""

    region: str
    edits: list[tuple[str, str, str]]
    repo: str
    sha: str
    path: str
    score: float
    imports: list[str] = field(default_factory=list)


def licence_of(git: Path) -> str:
    """Return the permissive licence of a repository at its head, or ""."""
    names = _run(git, "ls-tree", "--name-only", "HEAD").split("\n")
    found: list[str] = []
    for name in names:
        if not re.match(r"(licen[cs]e|copying|unlicense)", name, re.I):
            continue
        text = " ".join(_run(git, "show", f"HEAD:{name}").split())
        if re.search(
            r"GNU (LESSER |AFFERO |LIBRARY )?GENERAL PUBLIC|Mozilla Public|\bMPL\b", text, re.I
        ):
            return ""
        if "Apache License" in text and "Version 2.0" in text:
            found.append("Apache-2.0")
        elif (
            "Permission is hereby granted, free of charge" in text and "without restriction" in text
        ):
            found.append("MIT")
        elif "Redistribution and use in source and binary forms" in text:
            found.append(
                "BSD-3-Clause" if re.search(r"endorse or promote", text) else "BSD-2-Clause"
            )
        elif "PYTHON SOFTWARE FOUNDATION LICENSE" in text.upper():
            found.append("PSF-2.0")
    return " and ".join(sorted(set(found)))


def _run(git: Path, *command: str) -> str:
    done = subprocess.run(["git", f"--git-dir={git}", *command], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")


def instruction_of(subject: str) -> str:
    """Return a subject without tags and numbers, or "" when it is no instruction."""
    text = subject.strip()
    if _DULL.search(text) or text.lower().startswith(("add test", "test")):
        return ""
    for pattern, replacement in _TRIM:
        text = pattern.sub(replacement, text).strip()
    text = text.rstrip(". ")
    if not 8 <= len(text) <= 100 or len(text.split()) < 3 or not text.isascii() or text.count("#"):
        return ""
    return text


def commits_of(git: Path, most: int) -> Iterator[Commit]:
    """Yield commits that change one source file a little."""
    command = [
        "git",
        f"--git-dir={git}",
        "log",
        "--no-merges",
        "--no-renames",
        "--numstat",
        f"--max-count={most}",
        "--format=%x01%H%x02%an <%ae>%x02%s",
        "HEAD",
        "--",
        "*.py",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    head: list[str] = []
    files: list[tuple[int, str]] = []

    def usable() -> Commit | None:
        if len(head) != 3 or _BOT.search(head[1]):
            return None
        sources = [(changed, path) for changed, path in files if not _TEST.search(path)]
        instruction = instruction_of(head[2])
        if len(sources) != 1 or not 0 < sources[0][0] <= MOST_CHANGED * 2 or not instruction:
            return None
        return Commit(head[0], instruction, sources[0][1])

    for raw in process.stdout:
        line = raw.decode("utf-8", "replace").rstrip("\n")
        if line.startswith("\x01"):
            if found := usable():
                yield found
            head, files = line[1:].split("\x02"), []
        elif line.count("\t") == 2:
            added, removed, path = line.split("\t")
            files.append(
                (
                    int(added) + int(removed) if added.isdigit() and removed.isdigit() else 10_000,
                    path,
                )
            )
    if found := usable():
        yield found
    process.wait()


class Blobs:
    """Reads files of a repository through one process."""

    def __init__(self, git: Path) -> None:
        self._process = subprocess.Popen(
            ["git", f"--git-dir={git}", "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def read(self, name: str) -> str | None:
        """Return a file's text, or None."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n".encode())
        self._process.stdin.flush()
        head = self._process.stdout.readline().split()
        if len(head) != 3:
            return None
        raw = self._process.stdout.read(int(head[2]))
        self._process.stdout.read(1)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _start(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)]) - 1


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def region_around(tree: ast.Module, first: int, last: int) -> tuple[int, int] | None:
    """Return the lines [from, to) of the region for a change of lines [first, last), all from 0."""
    best: tuple[int, int] | None = None
    body: list[ast.stmt] = tree.body
    while True:
        inside = [
            n for n in body if _start(n) <= first and max(last, first + 1) <= (n.end_lineno or 0)
        ]
        if not inside:
            break
        node = inside[0]
        begin, end = _start(node), node.end_lineno or 0
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if end - begin <= LONGEST_REGION and (
            is_function or (best is None and not isinstance(node, ast.ClassDef))
        ):
            best = (begin, end)
            if is_function:
                return best
        blocks: list[list[ast.stmt]] = []
        for name in ("body", "orelse", "finalbody"):
            blocks.append(getattr(node, name, []) or [])
        for handler in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            blocks.append(handler.body)
        deeper = [
            b
            for b in blocks
            if b
            and isinstance(b[0], ast.stmt)
            and _start(b[0]) <= first
            and last <= (b[-1].end_lineno or 0)
        ]
        if not deeper:
            break
        body = deeper[0]
    if best is not None and best[1] - best[0] >= 3:
        return best
    touched = [
        k
        for k, n in enumerate(body)
        if _start(n) < max(last, first + 1) and (n.end_lineno or 0) > first
    ]
    if not touched:
        before = [k for k, n in enumerate(body) if (n.end_lineno or 0) <= first]
        if not before:
            return None
        touched = [before[-1]]
    low, high = max(touched[0] - 2, 0), min(touched[-1] + 2, len(body) - 1)
    begin, end = _start(body[low]), body[high].end_lineno or 0
    begin, end = min(begin, first), max(end, last)
    return (begin, end) if 2 <= end - begin <= 40 else None


def _is_import(lines: list[str]) -> bool:
    text = [line.strip() for line in lines if line.strip()]
    return all(re.match(r"(from|import)\b|[\w, ()\\]+,?$", line) for line in text) and all(
        "=" not in line for line in text
    )


def score_of(instruction: str, region: str, script: str) -> float:
    """Guess from 0 to 1 how much of a change follows from its subject and region."""
    new = [w for line in script.split("\n") for w in _NAME.findall(line.partition("|")[2])]
    known = set(_NAME.findall(region)) | _COMMON
    words = {w.lower() for w in _NAME.findall(instruction)} | {
        w.lower() for w in re.findall(r"[A-Za-z]+", instruction)
    }
    novel = {w for w in new if w not in known and w.lower() not in words}
    near = {w for w in novel if any(p in words for p in w.lower().strip("_").split("_"))}
    lines = script.count("\n")
    touched = {w.lower() for w in new} | {
        w.lower() for line in region.split("\n") for w in _NAME.findall(line)
    }
    named = len(words & touched) / max(len(words), 1)
    return round(
        max(
            0.0,
            1.0
            - 0.16 * len(novel - near)
            - 0.06 * len(near)
            - 0.02 * max(lines - 3, 0)
            - 0.1 * (named < 0.15),
        ),
        3,
    )


def row_of(commit: Commit, old: str, new: str, repo: str) -> Row | None:
    """Return a commit's row, or None when it is not about one region."""
    if max(len(old), len(new)) > 400_000 or "\t" in old or "\r" in old:
        return None
    before, after = old.split("\n"), new.split("\n")
    codes = (
        [
            c
            for c in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
            if c[0] != "equal"
        ]
        if len(before) < 400
        else _codes(before, after)
    )
    imports: list[str] = []
    kept: list[tuple[str, int, int, int, int]] = []
    for code in codes:
        _, i1, i2, j1, j2 = code
        gone, come = before[i1:i2], after[j1:j2]
        if _is_import(gone) and _is_import(come) and any("import" in line for line in gone + come):
            imports += [line.strip() for line in come if line.strip()]
        elif any(line.strip() for line in gone + come) or kept:
            kept.append(code)
    if not kept:
        return None
    if sum(max(c[2] - c[1], c[4] - c[3]) for c in kept) > MOST_CHANGED:
        return None
    tree = _parse(old)
    if tree is None:
        return None
    found = region_around(tree, kept[0][1], kept[-1][2])
    if found is None:
        return None
    begin, end = found
    shift_begin = sum(
        (c[4] - c[3]) - (c[2] - c[1]) for c in codes if c[2] <= begin and c not in kept
    )
    inside = sum((c[4] - c[3]) - (c[2] - c[1]) for c in kept)
    inner_imports = [c for c in codes if c not in kept and begin < c[2] and c[1] < end]
    if inner_imports:
        return None
    source = "\n".join(before[begin:end]) + "\n"
    target = "\n".join(after[begin + shift_begin : end + shift_begin + inside]) + "\n"
    margin = fmt.margin_of(source)
    if any(line.strip() and not line.startswith(margin) for line in target.split("\n")):
        return None
    source, target = fmt.strip(source, margin), fmt.strip(target, margin)
    if (
        len(source) > 3_500
        or not source.isascii()
        or not target.isascii()
        or max(map(len, (source + target).split("\n"))) > 160
    ):
        return None
    first, second = _parse_block(source), _parse_block(target)
    if first is None or second is None or ast.dump(first) == ast.dump(second):
        return None
    script = fmt.script(source, target)
    if fmt.apply(source, script) != target or len(script) > 900:
        return None
    return Row(
        source,
        [("commit", commit.subject, script)],
        repo,
        commit.sha[:12],
        commit.path,
        score_of(commit.subject, source, script),
        imports,
    )


def _codes(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Opcodes of long files: what is equal at both ends is left aside first."""
    low = 0
    while low < min(len(before), len(after)) and before[low] == after[low]:
        low += 1
    high = 0
    while high < min(len(before), len(after)) - low and before[-1 - high] == after[-1 - high]:
        high += 1
    inner = difflib.SequenceMatcher(
        None, before[low : len(before) - high], after[low : len(after) - high], autojunk=False
    )
    return [
        (t, a + low, b + low, c + low, d + low)
        for t, a, b, c, d in inner.get_opcodes()
        if t != "equal"
    ]


def _parse_block(text: str) -> ast.Module | None:
    """Parse a dedented region; `return` and the like are allowed."""
    return _parse("async def _():\n" + textwrap.indent(text, " ")) or _parse(text)


def main() -> None:
    """Write one file of rows a repository, and a table of what was made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("repositories", nargs="+", help="GITFOLDER=OWNER/NAME")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument(
        "--most", type=int, default=30_000, help="commits of a repository that are looked at"
    )
    options = parser.parse_args()
    for folder in (options.out, options.held_out):
        folder.mkdir(parents=True, exist_ok=True)
    for argument in options.repositories:
        git, name = Path(argument.split("=")[0]), argument.split("=")[1]
        short = name.split("/")[1].lower()
        target = (
            options.held_out if short in HELD_OUT else options.out
        ) / f"{name.replace('/', '+')}.jsonl"
        table = options.out / "sources.jsonl"
        if target.exists() or _EXCLUDED.search(name):
            continue
        licence = licence_of(git)
        entry: dict[str, Any] = {
            "repo": name,
            "licence": licence,
            "head": _run(git, "rev-parse", "HEAD").strip(),
        }
        rows: list[Row] = []
        if licence:
            blobs, seen = Blobs(git), set[bytes]()
            looked = 0
            for commit in commits_of(git, options.most):
                looked += 1
                old, new = (
                    blobs.read(f"{rev}:{commit.path}") for rev in (f"{commit.sha}^", commit.sha)
                )
                row = row_of(commit, old, new, name) if old and new else None
                if row is None:
                    continue
                digest = hashlib.blake2b(
                    (row.region + row.edits[0][2]).encode(), digest_size=8
                ).digest()
                if digest not in seen:
                    seen.add(digest)
                    rows.append(row)
            blobs.close()
            entry |= {
                "candidates": looked,
                "rows": len(rows),
                "with_import": sum(bool(r.imports) for r in rows),
            }
        unfinished = target.with_suffix(".part")
        unfinished.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
        unfinished.replace(target)
        entry["sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
        with table.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
