"""Which part may import which, and what a cold start may load.

The contracts between parts are in pyproject.toml and checked by import-linter, imports inside
functions included.  A fresh interpreter then says what it has really loaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import grimp

import midstream

ROOT = Path(midstream.__file__).parents[2]
_CLASS = re.compile(r"\s*class (\w+)\s*[:(]")
# Textual imports tree_sitter itself, which takes a millisecond; a grammar takes tens.
HEAVY = ("onnxruntime", "numpy", "git", "tokenizers", "tree_sitter_cpp", "tree_sitter_go")


def test_the_import_contracts_hold() -> None:
    """Contracts: layers, no cycles, forbidden imports; `lint-imports` alone prints the same."""
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "app"), "COLUMNS": "200"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_edits_imports_only_pure_libraries() -> None:
    allowed = {*sys.stdlib_module_names, "rapidfuzz", "pygments", "tree_sitter"}
    graph = grimp.build_graph("midstream", include_external_packages=True)
    imported = {
        target
        for module in {"midstream.edits", *graph.find_descendants("midstream.edits")}
        for target in graph.find_modules_directly_imported_by(module)
        if not target.startswith(("midstream.code.", "midstream.counting", "midstream.edits"))
    }
    assert imported <= allowed


def test_a_class_name_stands_for_one_class() -> None:
    """Private ones too, so that a search finds its target; the example project does not count."""
    where: defaultdict[str, list[str]] = defaultdict(list)
    for file in (ROOT / "app" / "midstream").rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        if "/demo/project/" in path:
            continue
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if found := _CLASS.match(line):
                where[found[1]].append(f"{path}:{number}")
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


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


def test_a_grammar_is_imported_with_the_first_file_in_its_language() -> None:
    code = (
        "import sys; from midstream.code.outline import outline\n"
        "def grammars():\n"
        "    return {n.split('.')[0] for n in sys.modules if n.startswith('tree_sitter_')}\n"
        "assert not grammars()\n"
        "outline(['fn a() {}'], 'a.rs'); assert grammars() == {'tree_sitter_rust'}, grammars()\n"
        "outline(['def a(): pass'], 'a.py'); assert grammars() == {'tree_sitter_rust'}\n"
        "outline(['a() { :; }'], 'a.sh'); assert len(grammars()) == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_opening_a_session_does_not_compile_what_only_a_turn_needs() -> None:
    """These take 0.2 s of processor time, between the first paint and the first file."""
    later = {"midstream.guard.secrets", "midstream.pairing.request.kinds", "websockets"}
    code = f"import midstream.pairing.session, sys; assert not {later} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_search_starts_no_event_loop() -> None:
    """To import one takes a tenth of the time of a short search, and each is a process."""
    children = (
        *("codebase.kinds_child", "codebase.references_child", "codebase.related_child"),
        *("codebase.syntax_child", "engine.chat_template_child"),
    )
    names = ", ".join(f"midstream.{child}" for child in children)
    code = f"import {names}, sys; assert 'asyncio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
