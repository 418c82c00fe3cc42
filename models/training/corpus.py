"""Collect permissively licensed Python functions: the raw material of every training example.

Reads the standard library and a folder of wheels, keeps distributions whose own metadata names an
MIT, BSD, Apache, ISC or PSF licence, cuts the sources into functions, methods and short
module-level snippets, removes duplicates by a normalised syntax tree and splits by package, so that
no held-out package is ever trained on. What is nearly the same as held-out code, or has the name of
a benchmark's function, is left out of training (`duplicates`). It does not make edits (`tasks`) and
does not download anything.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.parser import Parser
from multiprocessing import Pool
from pathlib import Path

from models.training.duplicates import NearDuplicates, is_benchmark

HELD_OUT = frozenset(
    ["click", "flask", "jinja2", "networkx", "nltk", "pygments", "requests", "tornado", "werkzeug"]
)
"""Packages that only evaluation sees."""

MAX_LINES = 40
MAX_LINE_CHARS = 110
MAX_CHARS = 1_800
MAX_FILE_BYTES = 250_000
PER_PACKAGE = 6_000
"""No package gives more snippets than this, so that the biggest do not drown it."""

_PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|HPND|0BSD)\b", re.I)
_COPYLEFT = re.compile(r"\b(A?GPL|LGPL|GNU|MPL|Mozilla|EUPL|CDDL|proprietary)\b", re.I)
_SKIP_PARTS = re.compile(
    r"(^|/)(_?vendor(ed)?|extern|externals|third_party|node_modules|site-packages|locale)/"
)
_TESTS = re.compile(r"(^|/)(tests?|testing|conftest|test_[^/]*|[^/]*_test)(/|\.py$)")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One function, method or run of module-level statements, as it stands in its file (with its
    indent).
    """

    package: str
    kind: str
    text: str


def licence_of(metadata: str) -> str:
    """Return the licence that a wheel's METADATA names, or "" when it names none."""
    message = Parser().parsestr(metadata, headersonly=True)
    expression = message.get("License-Expression", "")
    classifiers = [
        line.split("::")[-1].strip()
        for line in message.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    first_line = (message.get("License", "") or "").strip().split("\n")[0][:60]
    return expression or " / ".join(classifiers) or first_line


def is_permissive(licence: str) -> bool:
    """Whether a licence name is one of those that this project trains on."""
    return bool(_PERMISSIVE.search(licence)) and not _COPYLEFT.search(licence)


def _digest(tree: ast.AST) -> bytes:
    return hashlib.blake2b(ast.dump(tree).encode(), digest_size=8).digest()


def _good(text: str, lines: int) -> bool:
    return (
        2 <= lines <= MAX_LINES
        and len(text) <= MAX_CHARS
        and text.isascii()
        and "\t" not in text
        and "\f" not in text
        and max(map(len, text.split("\n"))) <= MAX_LINE_CHARS
    )


def snippets_of(source: str, package: str) -> Iterator[tuple[bytes, Snippet]]:
    """Yield (digest, snippet) for every usable piece of one file (nothing if unparsable)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = source.split("\n")
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    owners = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef)]
    for parent in owners:
        for node in parent.body:
            if not isinstance(node, functions):
                continue
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            text = "\n".join(lines[start : node.end_lineno]) + "\n"
            if _good(text, (node.end_lineno or 0) - start):
                kind = "method" if isinstance(parent, ast.ClassDef) else "function"
                yield _digest(node), Snippet(package, kind, text)
    plain = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.With, ast.Try, ast.Return)
    for parent in [tree, *(n for n in ast.walk(tree) if isinstance(n, functions))]:
        run: list[ast.stmt] = []
        for node in [*parent.body, None]:
            if isinstance(node, plain) and len(run) < 6:
                run.append(node)
                continue
            if len(run) >= 2 and (parent is tree or len(parent.body) > 8):
                text = "\n".join(lines[run[0].lineno - 1 : run[-1].end_lineno]) + "\n"
                if _good(text, text.count("\n")) and text.count("\n") <= 20:
                    digest = _digest(ast.Module(body=run, type_ignores=[]))
                    yield digest, Snippet(package, "block", text)
            run = [node] if isinstance(node, plain) else []


def _read_wheel(path: Path) -> tuple[str, str, list[str]]:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
        licence = licence_of(wheel.read(metadata).decode("utf-8", "replace"))
        sources: list[str] = []
        for info in wheel.infolist() if is_permissive(licence) else []:
            name = info.filename
            if not name.endswith(".py") or info.file_size > MAX_FILE_BYTES:
                continue
            if not _SKIP_PARTS.search(name) and not _TESTS.search(name):
                sources.append(wheel.read(info).decode("utf-8", "replace"))
    return path.name.split("-")[0].lower().replace("_", "-"), licence, sources


def _read_stdlib() -> tuple[str, str, list[str]]:
    root = Path(sysconfig.get_paths()["stdlib"])
    sources = [
        path.read_text("utf-8", "replace")
        for path in sorted(root.rglob("*.py"))
        if "site-packages" not in path.parts
        and not _TESTS.search(str(path.relative_to(root)))
        and path.stat().st_size <= MAX_FILE_BYTES
    ]
    return "stdlib", "PSF-2.0", sources


def _collect(path: Path | None) -> tuple[str, str, list[tuple[bytes, Snippet]]]:
    sys.setrecursionlimit(20_000)
    package, licence, sources = _read_stdlib() if path is None else _read_wheel(path)
    found: list[tuple[bytes, Snippet]] = []
    seen: set[bytes] = set()
    for source in sources:
        for digest, snippet in snippets_of(source, package):
            if digest not in seen:
                seen.add(digest)
                found.append((digest, snippet))
    if len(found) > PER_PACKAGE:
        found = sorted(found, key=lambda item: item[0])[:PER_PACKAGE]
    return package, licence, found


def main() -> None:
    """Write `train.jsonl`, `heldout.jsonl` and `DATA_SOURCES.json` into the data folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--wheels", type=Path, required=True, help="folder with downloaded wheels")
    parser.add_argument("--out", type=Path, default=Path("models/training/data"))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs: list[Path | None] = [None, *sorted(arguments.wheels.glob("*.whl"))]
    with Pool(arguments.jobs) as pool:
        results = list(pool.imap_unordered(_collect, jobs))
    # Held-out packages first: a copy of their code elsewhere is dropped from the training side.
    results.sort(key=lambda result: (result[0] not in HELD_OUT, result[0]))
    seen: set[bytes] = set()
    sources: list[dict[str, object]] = []
    files = {name: (arguments.out / f"{name}.jsonl").open("w") for name in ("train", "heldout")}
    held_out = [found for package, _, found in results if package in HELD_OUT]
    near = NearDuplicates(snippet.text for found in held_out for _, snippet in found)
    for package, licence, found in results:
        split = "heldout" if package in HELD_OUT else "train"
        fresh = [snippet for digest, snippet in found if digest not in seen]
        count = len(fresh)
        if split == "train":
            fresh = [s for s in fresh if not is_benchmark(s.text) and not near.has(s.text)]
        seen.update(digest for digest, _ in found)
        for snippet in fresh:
            files[split].write(json.dumps(asdict(snippet)) + "\n")
        sources.append(
            {
                "package": package,
                "licence": licence,
                "split": split,
                "snippets": len(fresh),
                "left_out": count - len(fresh),
            }
        )
    for file in files.values():
        file.close()
    (arguments.out / "DATA_SOURCES.json").write_text(json.dumps(sources, indent=1))


if __name__ == "__main__":
    main()
