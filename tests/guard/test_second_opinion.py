"""bandit as a second opinion, in a real child process; the package itself is a stand-in."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from midstream.guard.findings import Finding, Level
from midstream.guard.second_opinion import SecondOpinion, has_bandit

MANAGER = """
class Issue:
    def __init__(self, test_id, text, lineno):
        self.test_id, self.text, self.lineno = test_id, text, lineno

class BanditManager:
    def __init__(self, config, kind):
        self.files_list, self.results = [], []

    def run_tests(self):
        print("noise on standard output")
        for number, line in enumerate(open(self.files_list[0]), 1):
            for rule in ("B101", "B324", "B608", "B702"):
                if rule in line:
                    self.results.append(Issue(rule, "Found " + rule + ".", number))
"""


@pytest.fixture
def bandit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = tmp_path / "bandit" / "core"
    core.mkdir(parents=True)
    (core.parent / "__init__.py").touch()
    (core / "__init__.py").touch()
    (core / "config.py").write_text("class BanditConfig:\n    pass\n")
    (core / "manager.py").write_text(MANAGER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.usefixtures("bandit")
async def test_only_what_is_new_and_not_known_is_told() -> None:
    assert has_bandit()
    second = SecondOpinion({})
    before = ["x = 1  # B702"]
    after = ["x = 1  # B702", "def f():", "    y = 2  # B702 again", "    z = 3  # B101 B608"]
    after += ["    h = 4  # B324", "    i = 5  # B324 nosec # nosec"]
    known = [Finding("S324", "", 4, 5, Level.WARN, "", "h = 4  # B324")]
    try:
        found = await second.new_findings(before, after, known)
        assert [(f.rule, f.line, f.level) for f in found] == [("B702", 2, Level.WARN)]
        assert found[0].message == "Found B702"
        assert second.problem == ""
    finally:
        await second.close()


@pytest.mark.usefixtures("bandit")
async def test_levels_of_the_person() -> None:
    second = SecondOpinion({"bandit": Level.OFF, "B702": Level.HALT})
    try:
        found = await second.new_findings([], ["x = 1  # B702 B324"], [])
        assert [(f.rule, f.level) for f in found] == [("B702", Level.HALT)]
    finally:
        await second.close()


@pytest.mark.usefixtures("bandit")
async def test_a_child_that_dies_is_said_to_be_dead() -> None:
    second = SecondOpinion({})
    await second.new_findings([], ["x = 1"], [])
    process = second._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    assert await second.new_findings([], ["x = 1  # B702"], []) == []
    assert "bandit does not answer" in second.problem
    await second.close()
