"""The arrows between rooms, and what a cold start may import.

The rules are those of AGENTS.md.  Static: every import statement in a room is looked at, also those
inside functions.  Dynamic: a fresh interpreter says what it has really loaded.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import midstream

PACKAGE = Path(midstream.__file__).parent

HEAVY = ("onnxruntime", "numpy", "git", "tokenizers", "httpx")

PURE_LIBRARIES = {"rapidfuzz", "pygments"}

FORBIDDEN: dict[str, tuple[str, ...]] = {
    "wafer": ("midstream",),
    "engine": ("midstream.serving", "midstream.pairing", "midstream.tui", "midstream.workspace"),
    "responses": ("midstream.engine", "midstream.tui", "midstream.pairing"),
    "serving": ("midstream.tui", "midstream.pairing", "midstream.workspace.files"),
    "workspace": ("midstream.tui", "midstream.pairing", "midstream.engine", "midstream.serving"),
    "pairing": ("midstream.tui", "textual", "midstream.engine", "onnxruntime"),
    "guard": ("midstream.tui", "midstream.pairing", "textual"),
    "tui": ("midstream.engine", "midstream.workspace", "onnxruntime", "git"),
}


def imported(path: Path) -> Iterator[str]:
    """Yield the absolute name of every module that a file imports."""
    module = ("midstream", *path.relative_to(PACKAGE).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(module[: -node.level]) if node.level else ""
            prefix = ".".join(part for part in (base, node.module or "") if part)
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("room", sorted(FORBIDDEN))
def test_no_forbidden_arrow(room: str) -> None:
    broken = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for name in imported(path)
        for target in FORBIDDEN[room]
        if inside(name, target) and not inside(name, f"midstream.{room}")
    ]
    assert not broken


def test_edits_is_pure() -> None:
    allowed = PURE_LIBRARIES | set(sys.stdlib_module_names) - {
        "socket",
        "subprocess",
        "asyncio",
        "time",
    }
    broken = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sorted((PACKAGE / "edits").rglob("*.py"))
        for name in imported(path)
        if not inside(name, "midstream.edits") and name.split(".")[0] not in allowed
    ]
    assert not broken


def test_only_the_command_line_imports_the_screen() -> None:
    broken = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("tui", "cli.py", "bench")
        for name in imported(path)
        if inside(name, "midstream.tui")
    ]
    assert not broken


def loaded_after(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after running ``code``."""
    script = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return {name.split(".")[0] for name in json.loads(run.stdout.splitlines()[-1])}


def test_help_stays_light() -> None:
    code = (
        "import sys\nfrom midstream.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    )
    assert loaded_after(code).isdisjoint({*HEAVY, "textual", "uvicorn", "starlette", "websockets"})


def test_first_paint_stays_light() -> None:
    """Compose the whole screen headless; look at what was imported when the first frame came."""
    code = """
import asyncio, json, sys, tempfile
from pathlib import Path
from midstream.settings import load_settings
from midstream.tui.app import MidstreamApp

async def main():
    root = Path(tempfile.mkdtemp())
    async with MidstreamApp(root, load_settings(root)).run_test(size=(120, 40)):
        print("\\n" + json.dumps(sorted(sys.modules)))

asyncio.run(main())
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.split(".")[0] for name in json.loads(run.stdout.strip().splitlines()[-1])}
    assert loaded.isdisjoint(HEAVY)
