"""``midstream guard``: scan files or standard input as the live guard would."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from midstream.errors import UsageError
from midstream.guard.findings import Finding, Level
from midstream.guard.scanner import Scanner

_SARIF_LEVEL = {Level.HALT: "error", Level.WARN: "warning"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="files to scan; - is standard input"
    )
    parser.add_argument("--stdin-name", default="stdin.py", help="what standard input is called")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per finding")
    form.add_argument("--sarif", action="store_true", help="one SARIF 2.1.0 document")


def run(options: argparse.Namespace) -> int:
    """Scan; return 1 where the live guard would have halted, else 0.

    Raises:
        UsageError: A file cannot be read.
    """
    texts = [_read(name, options.stdin_name) for name in options.files]
    found = asyncio.run(_scan_all(texts))
    if options.sarif:
        print(json.dumps(_sarif(found), indent=2))
    else:
        for path, finding in found:
            print(json.dumps(_as_dict(path, finding)) if options.json else _as_line(path, finding))
    return int(any(finding.level is Level.HALT for _, finding in found))


def _read(name: str, stdin_name: str) -> tuple[str, list[str]]:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read: {error.strerror}; name a text file or -."
        ) from error
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return (stdin_name if name == "-" else name), text.split("\n")


async def _scan_all(texts: Sequence[tuple[str, list[str]]]) -> list[tuple[str, Finding]]:
    scanner = Scanner()
    try:
        found = [
            (path, finding)
            for path, lines in texts
            for finding in await scanner.scan_whole(lines, path)
        ]
    finally:
        await scanner.close()
    if scanner.problem:
        print(f"midstream guard: Python is unguarded: {scanner.problem}", file=sys.stderr)
    return found


def _as_line(path: str, finding: Finding) -> str:
    hint = f" ({finding.idiom})" if finding.idiom else ""
    return f"{path}:{finding.line + 1}: {finding.level} {finding.rule}: {finding.message}{hint}"


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
    """Return findings as SARIF 2.1.0 (OASIS standard, sections 3.13 to 3.27)."""
    results = [
        {
            "ruleId": finding.rule,
            "level": _SARIF_LEVEL[finding.level],
            "message": {"text": finding.message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": path},
                        "region": {"startLine": finding.line + 1, "endLine": finding.stop},
                    }
                }
            ],
        }
        for path, finding in found
    ]
    rules = [{"id": rule} for rule in sorted({finding.rule for _, finding in found})]
    driver = {"name": "midstream guard", "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
