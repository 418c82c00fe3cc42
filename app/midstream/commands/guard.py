"""Scan files, folders or standard input for security problems.

The findings are those of the guard, which reads each line while it is written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from midstream import __version__
from midstream.code.syntax import is_python
from midstream.commands.common import printable
from midstream.errors import UnavailableError, UsageError
from midstream.guard.findings import Finding, Level
from midstream.guard.scanner import Scanner
from midstream.settings import load_settings
from midstream.workspace.paths import few_shown, shown

MAX_FILE_BYTES = 1 << 20
"""Bytes; larger files in a folder count as data and are skipped unless named."""

_SARIF_LEVEL = {Level.HALT: "error", Level.WARN: "warning"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="files and folders to scan, without what git ignores; - is standard input",
    )
    parser.add_argument(
        "--stdin-name",
        default="stdin.py",
        metavar="NAME",
        help="file name for standard input (stdin.py)",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="leave out the findings that FILE lists"
    )
    parser.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="write the current findings to FILE"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per finding")
    form.add_argument("--sarif", action="store_true", help="one SARIF 2.1.0 document")


def run(options: argparse.Namespace) -> int:
    """Scan; returns 1 if the live guard would have halted, 3 if ruff did not look, else 0.

    Raises:
        UsageError: A file cannot be read or written.
    """
    levels = {rule: Level(level) for rule, level in load_settings(Path()).guard_levels}
    texts = [
        (options.stdin_name if name == "-" else name, data.split("\n"))
        for given in options.files
        for name, data in (_below(given) if Path(given).is_dir() else [(given, _read(given))])
    ]
    found, whole = asyncio.run(_scan_all(texts, levels))
    code = 0 if whole else UnavailableError.exit_code
    if options.write_baseline is not None:
        if whole:
            _write_baseline(options.write_baseline, found)
        return code
    if options.baseline is not None:
        found = _without(found, _read_baseline(options.baseline))
    if options.sarif:
        print(json.dumps(_sarif(found), indent=2))
    else:
        for path, finding in found:
            print(json.dumps(_as_dict(path, finding)) if options.json else _as_line(path, finding))
    return 1 if any(finding.level is Level.HALT for _, finding in found) else code


def _read(name: str | Path) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read: {error.strerror}; name a text file, a folder or -."
        ) from error
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _below(folder: str) -> Iterator[tuple[str, str]]:
    """The names and texts of the text files in a folder."""
    from midstream.workspace.listing import list_files

    for rel in list_files(Path(folder))[0]:
        path = Path(folder) / rel
        if (
            path.is_file()
            and path.stat().st_size <= MAX_FILE_BYTES
            and "\0" not in (text := _read(path))
        ):
            yield str(path), text


def _write_baseline(path: Path, found: Sequence[tuple[str, Finding]]) -> None:
    entries = [{"path": where, "rule": f.rule, "evidence": f.evidence} for where, f in found]
    try:
        path.write_text(json.dumps({"findings": entries}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


def _read_baseline(path: Path) -> Counter[tuple[str, str, str]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["findings"]
        return Counter((e["path"], e["rule"], e["evidence"]) for e in entries)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{path} is not a baseline; write one with midstream guard --write-baseline."
        ) from None


def _without(
    found: Sequence[tuple[str, Finding]], known: Counter[tuple[str, str, str]]
) -> list[tuple[str, Finding]]:
    fresh: list[tuple[str, Finding]] = []
    for path, finding in found:
        key = (path, finding.rule, finding.evidence)
        if known[key] > 0:
            known[key] -= 1
        else:
            fresh.append((path, finding))
    return fresh


async def _scan_all(
    texts: Sequence[tuple[str, list[str]]], levels: Mapping[str, Level]
) -> tuple[list[tuple[str, Finding]], bool]:
    """The findings by file, and whether ruff has looked at all of the Python."""
    scanner = Scanner(levels)
    found: list[tuple[str, Finding]] = []
    blind: dict[str, str] = {}
    try:
        for path, lines in texts:
            unread = scanner.unread
            found += [(path, finding) for finding in await scanner.scan(lines, path, runs=True)]
            if scanner.unread != unread:
                blind[path] = scanner.problem.rstrip(".")
    finally:
        await scanner.close()
    if blind:
        why, where = next(iter(blind.values())), few_shown([*blind])
        _note(f"{why}, so of Python only credentials and queries are checked in {where}.")
    if odd := [path for path, lines in texts if any("\0" in line for line in lines)]:
        _note(f"{few_shown(odd)} cannot be read as UTF-8 text, so findings may be missing.")
    others = [p for p, _ in texts if not scanner.guards(p) and not is_python(p) and p not in odd]
    if others:
        _note(f"Only credentials are looked for in {few_shown(others)}.")
    return found, not blind


def _note(sentence: str) -> None:
    print(f"midstream guard: {sentence}", file=sys.stderr)


def _as_line(path: str, finding: Finding) -> str:
    hint = f" ({finding.idiom})" if finding.idiom else ""
    place = f"{shown(path)}:{finding.line + 1}"
    return f"{place}: {finding.level} {finding.rule}: {printable(finding.message)}{hint}"


def _as_dict(path: str, finding: Finding) -> dict[str, Any]:
    return {
        "path": path,
        "line": finding.line + 1,
        "end_line": finding.stop,
        "rule": finding.rule,
        "level": finding.level.value,
        "message": finding.message,
        "idiom": finding.idiom,
    }


def _sarif(found: Sequence[tuple[str, Finding]]) -> dict[str, Any]:
    """The findings as SARIF 2.1.0 (OASIS standard, sections 3.13 to 3.27)."""
    results = [
        {
            "ruleId": finding.rule,
            "level": _SARIF_LEVEL[finding.level],
            "message": {"text": ". ".join(filter(None, (finding.message, finding.idiom)))},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(os.fsencode(Path(path).as_posix()))},
                        "region": {"startLine": finding.line + 1, "endLine": finding.stop},
                    }
                }
            ],
        }
        for path, finding in found
    ]
    rules = [{"id": rule} for rule in sorted({finding.rule for _, finding in found})]
    driver = {"name": "midstream guard", "version": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
