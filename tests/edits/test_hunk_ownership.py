"""The store is the only one that can change a hunk: the type checker says so, and Python too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk

APP = Path(__file__).parents[2] / "app"

READ_ONLY = (
    ("state", "HunkState.ACCEPTED"),
    ("note", '"why"'),
    ("hold", "None"),
    ("own", "True"),
    ("displaced", "True"),
    ("anchored", "False"),
    ("match_level", "1"),
    ("start", "0"),
    ("stop", "1"),
    ("old", "()"),
    ("new", "()"),
)


@pytest.mark.system
def test_assigning_what_the_store_decides_fails_type_checking(tmp_path: Path) -> None:
    lines = [
        "from midstream.edits.hunks import Hunk, HunkState",
        "def meddle(hunk: Hunk) -> None:",
        *(f"    hunk.{name} = {value}" for name, value in READ_ONLY),
        "    hunk._state = HunkState.ACCEPTED",
        "def look(hunk: Hunk) -> bool:",
        "    return hunk.state is HunkState.ACCEPTED",
    ]
    (tmp_path / "meddling.py").write_text("# pyright: strict\n" + "\n".join(lines) + "\n")
    config = {"include": ["meddling.py"], "extraPaths": [str(APP)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    found = json.loads(run.stdout)["generalDiagnostics"]
    assert {d["range"]["start"]["line"] for d in found} == set(range(3, 4 + len(READ_ONLY)))
    rules = {d["rule"] for d in found}
    assert rules == {"reportAttributeAccessIssue", "reportPrivateUsage"}


@pytest.mark.parametrize("name", [name for name, _ in READ_ONLY])
def test_nothing_but_the_store_changes_a_hunk(name: str) -> None:
    hunk: Hunk = HunkStore().open("a.py", 0)
    with pytest.raises(AttributeError):
        setattr(hunk, name, getattr(hunk, name))
