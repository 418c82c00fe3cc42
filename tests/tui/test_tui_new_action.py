"""What a new action on hunks needs: an entry in the table, a controller method, a session method.

Keys, key bar, help, palette and plain mode then have it by themselves.  The table is read when the
screens are imported, so the newcomer's changes are made in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHANGES = """
import asyncio, sys
from pathlib import Path

from midstream import actions
from midstream.edits.hunks import HunkState

entry = actions.Action(
    "hunk.shout", "ctrl+y", "decide.shout", "shout", "Write the hunk in capitals",
    actions.Group.DECIDE, offered=(HunkState.SETTLED,), hunk=actions.HunkCommand("decisions.shout"),
)
actions.ACTIONS = (*actions.ACTIONS, entry)
actions.BY_ID[entry.id] = entry

from midstream.pairing.files.decide import Decisions
from midstream.tui.review.decide import Decide

async def shout(self, hunk_id):
    return await self.edit(hunk_id, [line.upper() for line in self.hunks.get(hunk_id).new])

def decide_shout(self):
    session, hunk = self._state.session, self._open_hunk()
    async def work():
        await session.decisions.shout(hunk.id)
        self._pane.sync()
    self._work.run(work)

Decisions.shout = shout
Decide.shout = decide_shout
"""
CHECKS = """
from operator import attrgetter

from midstream.edits.hunks import Quarantine
from tests.helpers.pages import answered
from textual.widgets import Static
from tests.helpers.stage import on_stage

from midstream.plain.commands import PlainCommands
from midstream.plain.words import help_lines, understand
from midstream.tui.pages.help import HelpScreen
from midstream.tui.pages.picker import PickerScreen

async def main():
    async with on_stage(Path(sys.argv[1]), size=(200, 60)) as stage:
        await answered(stage)
        first, second = stage.session.hunks.undecided()
        assert stage.pane.hunk is first
        assert "ctrl+y shout" in stage.keys
        await stage.press("ctrl+y")
        await stage.until(lambda: first.new == ("    FOUND = 0",), "the key")
        assert any("FOUND = 0" in row for row in stage.rows)
        await stage.press("question_mark")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help")
        await stage.pilot.pause()
        shown = "\\n".join(strip.text for strip in stage.app.screen._compositor.render_strips())
        assert "ctrl+y Write the hunk in capitals" in shown, shown
        await stage.press("escape", "]", "colon")
        await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "palette")
        await stage.type("in capitals")
        await stage.press("enter")
        await stage.until(lambda: any("FOUND += 1" in line for line in second.new), "palette")
        said = []
        await stage.session.decisions.undo()
        commands = PlainCommands(stage.session, said.append)
        number = commands.number(second.id)
        line = understand(f"shout {number}", commands.is_file)
        assert line.word.name == "shout", line
        await commands.do(line)
        assert any("FOUND += 1" in line for line in second.new)
        assert said[0].startswith(f"Hunk {number}, pkg/things.py"), said
        for name in (a.hunk.method for a in actions.ACTIONS if a.hunk is not None):
            assert callable(attrgetter(name)(stage.session)), name
        stage.session.hunks.quarantine(second.id, Quarantine("S602", "a shell"))
        await commands.do(understand(f"release {number} it is a test", commands.is_file))
        assert second.state is HunkState.SETTLED
        assert any(line.startswith("shout 3 ") and "in capitals" in line for line in help_lines())

asyncio.run(main())
"""


def test_a_new_action_on_hunks_is_offered_everywhere(project: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CHANGES + CHECKS, str(project)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stderr
