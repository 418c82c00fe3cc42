"""A whole session killed at any system call, and resumed: what was decided stays as it is on disk.

The session asks, accepts, rejects, undoes, redoes, puts back what others wrote in three files, and
commits what was kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.killed_sessions import KILLED

pytestmark = pytest.mark.system

LAST_STEP = 2_600
"""More steps than the session has; nothing is killed after its end."""


def played(folder: Path, steps: range) -> list[dict[str, Any]]:
    """What became of a session killed at these steps, after one that was not."""
    command = [sys.executable, "-m", "tests.helpers.killed_sessions", str(folder)]
    done = subprocess.run([*command, *map(str, steps)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(found: dict[str, Any], names: list[str], states: list[dict[str, str]]) -> None:
    """Check one resumed session against the states of one that was not killed.

    Args:
        found: What became of it.
        names: What that one did, one thing after the other.
        states: What was on disk before, and after each.
    """
    where = f"step {found['step']}"
    assert found["resume code"] == 0, (where, found["resumed"])
    (said,) = found["resumed"]
    resumed = json.loads(said)
    done = [json.loads(line)[0] for line in found["said"]]
    assert done == names[: len(done)], where
    # The state before or after the interrupted step, whole: all earlier steps stay.
    possible = states[len(done) : len(done) + 2]
    opened, hunks = resumed["opened"], resumed["hunks"]
    assert opened in possible, (where, opened, possible)
    # A hunk agrees with the disk.
    for hunk in hunks:
        here = hunk["change"] in opened[hunk["path"]]
        if hunk["external"]:
            gone = hunk["state"] == "rejected" and not hunk["postponed"]
            assert here is not gone, (where, hunk, opened)
        else:
            assert here is (hunk["state"] == "accepted"), (where, hunk, opened)
    # A commit, begun before the kill or after it, has what was accepted and nothing else.
    accepted = {hunk["path"] for hunk in hunks if hunk["state"] == "accepted"}
    committed = resumed["committed"]
    for path, text in opened.items():
        untouched = "" if path == "new.py" else "before"
        wanted = text.removeprefix("mine ") if path in accepted else untouched
        assert committed[path] == wanted, (where, path, committed, hunks)
    # A later write changes nothing else; marked hunks may be put back at the end.
    assert resumed["written"], where
    end = resumed["at the end"]
    assert end in (opened, *possible, states[names.index("put back") + 1]), (where, end)
    assert end["run.py"] == opened["run.py"], where
    known = {".git", "later.py", *(name for name, text in end.items() if text)}
    assert set(resumed["names"]) == known, where
    assert not any("cannot" in notice for notice in resumed["told"]), (where, resumed["told"])


def check_all(folder: Path, steps: range) -> None:
    whole, *killed = played(folder, steps)
    assert whole["code"] == 0, whole["said"]
    told = [json.loads(line) for line in whole["said"]]
    names, after = [name for name, _, _ in told], [state for _, state, _ in told]
    before = {name: "" if name == "new.py" else "before" for name in after[0]}
    states = [before, *after, after[-1]]
    assert states[-1] == {
        **dict.fromkeys(("one.py", "two.py", "new.py"), "C"),
        **{"run.py": "mine AB", "late.py": "before"},
    }
    assert len(killed) == len(steps)
    check(whole, names, states)
    for found in killed:
        check(found, names, states)
    assert {found["code"] for found in killed} == {KILLED, 0}


@pytest.mark.parametrize("first", [7, 60, 113])
def test_a_session_killed_here_and_there(tmp_path: Path, first: int) -> None:
    check_all(tmp_path, range(first, LAST_STEP, 159))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_session_killed_at_every_system_call(tmp_path: Path) -> None:
    check_all(tmp_path, range(LAST_STEP))
