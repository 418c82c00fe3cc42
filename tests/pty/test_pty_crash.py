"""A defect of the program on a real terminal: one sentence, a report, the screen given back."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from midstream.bench.terminal import TerminalProgram
from midstream.defects import MAX_FRAMES, brief, report
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system

CODE = "def count(items):\n    total = 0\n    return total + SENTINEL_IN_THE_FILE\n"

BROKEN = {
    "widget": """
from midstream.tui.widgets.diff_pane import DiffPane
from midstream.pairing.status import SessionState
paint = DiffPane.render_lines
def broken(self, crop):
    session = self.app.session
    if session is not None and session.turns and not session.turns.last.running:
        kept = "a local variable with " + self.lines[0]
        raise ValueError(f"no room for {self.lines[2]!r} and hunter2 = 'ghp_{'a1B2' * 9}'")
    return paint(self, crop)
DiffPane.render_lines = broken
""",
    "worker": """
from midstream.tui.review.follow import Follow
def broken(self, turn):
    async def work():
        kept = "a local variable with " + self._pane.lines[2]
        raise RuntimeError("the worker broke")
    self._panes.screen.run_worker(work(), group="turn")
Follow.begin = broken
""",
}
RUN = """
import sys
from midstream.cli import main
sys.exit(main(["things.py", "--replay", sys.argv[1]]))
"""


@pytest.mark.parametrize("where", sorted(BROKEN))
def test_a_crash_is_one_sentence_and_a_report(tmp_path: Path, where: str) -> None:
    folder, state = tmp_path / "project", tmp_path / "state"
    folder.mkdir()
    (folder / "things.py").write_text(CODE)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "edit": [["total", "found"]], "rate": 900}]))
    program_text = f"{BROKEN[where]}\n{RUN}"
    os.environ.pop("NO_COLOR", None)
    with TerminalProgram(
        [sys.executable, "-c", program_text, str(script)],
        size=(100, 30),
        environment={"MIDSTREAM_STATE_DIR": str(state)},
        folder=folder,
    ) as program:
        program.wait_for("ready", PATIENCE_S)
        program.wait_for("def", PATIENCE_S)
        program.write("rename total\r")
        program.wait_for("because of a defect", PATIENCE_S)
        assert program.exit_code(PATIENCE_S) == 1
        output = program.output.decode(errors="replace")
    after = output.rpartition("\x1b[?1049l")[2]
    assert after.count("midstream: Midstream stopped because of a defect: ") == 1
    assert "Traceback" not in output
    assert "locals" not in output
    assert "SENTINEL_IN_THE_FILE" not in after
    assert len(after) < 600
    assert "your decisions are kept: midstream --resume." in after
    [crash] = state.glob("crash-*.txt")
    assert str(crash) in after
    assert stat.S_IMODE(crash.stat().st_mode) == 0o600
    text = crash.read_text()
    assert ("ValueError: " if where == "widget" else "RuntimeError: the worker broke") in text
    assert "textual/" in text
    for private in ("SENTINEL_IN_THE_FILE", "a local variable", "ghp_a1B2", str(tmp_path)):
        assert private not in text


def deep(calls: int) -> None:
    if not calls:
        raise KeyError("    return total + a_line_of_somebody's_file")
    deep(calls - 1)


def test_a_deep_stack_is_cut_and_quotations_are_left_out() -> None:
    with pytest.raises(KeyError) as caught:
        deep(400)
    text = report(caught.value)
    assert "a_line_of" not in text
    assert f"… {401 + 1 - MAX_FRAMES} more" in text
    assert brief(caught.value).startswith("KeyError in ")
