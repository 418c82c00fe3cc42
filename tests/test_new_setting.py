"""A setting is declared in one place: a new field of `Settings`, and everything else knows it.

The newcomer's field is put into the source of the declarations, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import midstream

ROOT = Path(midstream.__file__).parents[2]
ADDED = """
    bell_count: int = setting(
        2, COUNT, Section.LOOKS, "Rings of the bell when an answer is done.", "bell.count",
        at_once=True,
    )
    ascii: bool"""
CODE = """
import importlib.util, sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

class Newcomer(SourceFileLoader):
    def get_data(self, path):
        return super().get_data(path).replace(b"\\n    ascii: bool", ADDED.encode(), 1)

    def path_stats(self, path):
        raise OSError  # no cached bytecode

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "midstream.settings.declarations":
            file = str(Path(path[0]) / "declarations.py")
            return importlib.util.spec_from_file_location(name, file, loader=Newcomer(name, file))

sys.meta_path.insert(0, Finder())
from midstream.cli import main
from midstream.settings import load_settings

assert load_settings().bell_count == 2
assert load_settings(environ={"MIDSTREAM_BELL_COUNT": "5"}).bell_count == 5
assert main(["config", "bell.count", "0"]) == 2
assert main(["config", "bell.count", "3"]) == 0
assert load_settings().bell_count == 3
assert main(["config", "bell.count"]) == 0
assert main(["config", "bell.cuont"]) == 2
assert main(["config", "--schema"]) == 0
assert main(["config", "--unset", "bell.count"]) == 0
sys.argv = ["make.py", "--check"]
docs = importlib.util.spec_from_file_location("make", DOCS)
module = importlib.util.module_from_spec(docs)
docs.loader.exec_module(module)
assert "| `bell.count` | a whole number from 1 to 1024 | 2 | Rings" in module.render("settings.md")
"""


def test_a_new_setting_is_read_written_explained_and_documented(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    code = f"ADDED = {ADDED!r}\nDOCS = {str(ROOT / 'docs' / 'make.py')!r}\n{CODE}"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MIDSTREAM_CONFIG": str(config), "PYTHONPATH": str(ROOT / "app")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert 'did you mean "bell.count"' in run.stderr
    assert "Rings of the bell when an answer is done." in run.stdout
    assert "bell.count must be a whole number from 1 to 1024, not 0" in run.stderr
