"""The built-in model on screen: an answer that it is unsure of, one that it is sure of, and the key
of the way out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from tests.helpers.copyist import write_copyist
from tests.helpers.stage import CODE, ready


@pytest.mark.system
@pytest.mark.parametrize("unsure", [True, False])
async def test_an_answer_of_the_built_in_model(project: Path, tmp_path: Path, unsure: bool) -> None:
    folder = write_copyist(tmp_path / "judged", threshold=1.1 if unsure else 0.0)
    app = MidstreamApp(project, Settings(journal=False, attention=False, model=folder))
    async with ready(app) as stage:
        await stage.open("pkg/things.py")
        await stage.press("i")
        # One whole rename is never flagged.
        more = " and `items` to `things`" if unsure else ""
        stage.composer.put(f"rename `total` to `found`{more} in count")
        await stage.press("enter")
        await stage.until(
            lambda: (
                app.session is not None
                and app.session.turns.last is not None
                and not app.session.turns.last.running
            ),
            "end",
        )
        assert stage.session.hunks.undecided()
        if not unsure:
            assert "unsure" not in stage.notice
            await stage.press("escape")
            assert "A accept all" in stage.keys
            assert "u undo" not in stage.keys
            await stage.press("A")
            await stage.until(lambda: not stage.session.hunks.undecided(), "all are accepted")
            assert "A accept all" not in stage.keys
            assert "u undo" in stage.keys
            assert "found += 1" in (project / "pkg" / "things.py").read_text()
            return
        await stage.until(lambda: "was not sure of this change" in stage.notice, "sentence")
        assert stage.notice.endswith("or ask a larger model (press M).")
        await stage.press("escape")
        assert any("model unsure" in row for row in stage.rows)
        assert len(stage.session.hunks.undecided()) > 1
        assert "A accept all" not in stage.keys
        await stage.press("A", "A")
        await stage.until(lambda: "decide one by one" in stage.notice, "held back")
        assert "model unsure" in stage.notice
        assert (project / "pkg" / "things.py").read_text() == CODE
        waiting = len(stage.session.hunks.undecided())
        await stage.press("a")
        await stage.until(
            lambda: len(stage.session.hunks.undecided()) == waiting - 1, "one is accepted"
        )
