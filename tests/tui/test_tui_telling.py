"""Notices and how long they stay, keys without a meaning, and decisions out of sight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.session import PairingSession
from midstream.settings import Settings
from midstream.tui import notices
from midstream.tui.app import MidstreamApp
from tests.helpers.stage import CODE, Stage, on_stage
from tests.helpers.stepped import SteppedModel, served


async def test_what_became_of_a_turn_stays_until_somebody_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "FACT_S", 0.1)
    await stage.open("pkg/things.py")
    await stage.press("v")
    await stage.instruct("leave it")
    stage.model.give(stage.model.region)
    stage.model.give(None)
    await stage.until(lambda: "stepped left " in stage.notice, "outcome")
    await stage.pilot.pause(0.3)
    assert "stepped left " in stage.notice
    await stage.press("j")
    assert stage.notice == ""
    monkeypatch.setattr(notices, "FACT_S", 3.0)
    await stage.press("w")
    assert "Long lines wrap" in stage.notice
    await stage.until(lambda: stage.notice == "", "the fact goes by itself")


async def test_an_outcome_is_not_taken_away_by_keys_that_were_on_their_way(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    stage.screen.notices.say("info", "It is done.", outcome=True)
    await stage.press("j", "k")
    assert stage.notice == "It is done."


async def test_a_question_that_an_outcome_has_covered_comes_back_without_a_key(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "COVER_S", 0.1)
    stage.screen.notices.ask("May it run the tests?", ("yes", lambda: None))
    stage.screen.notices.say("info", "It changed a.py.", outcome=True)
    assert stage.notice == "It changed a.py."
    await stage.until(lambda: stage.notice == "May it run the tests?", "the question")
    assert stage.choices == ("yes",)


async def test_letters_without_a_meaning_are_answered_once(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("Y")
    assert stage.notice == ""
    await stage.press("Q")
    assert stage.notice == "Q does nothing here; press i to write to the model, ? for the keys."
    await stage.press("escape", "Y", "Y", "Y")
    assert stage.notice == ""
    await stage.press("i", "p", "p", "escape")
    assert stage.composer.text == "pp"


@pytest.mark.parametrize("key", ["A", "R"])
async def test_where_nothing_is_to_decide_the_way_to_other_files_is_named(
    stage: Stage, project: Path, key: str
) -> None:
    (project / "other.py").write_text("first = 1\n")
    await stage.open("other.py")
    await stage.press(key)
    await stage.until(lambda: stage.notice == "No undecided hunks in this file.", "nothing")
    await stage.propose_more()
    await stage.open("other.py")
    await stage.press(key)
    where = "1 hunk waits in other files, ] goes there."
    await stage.until(lambda: stage.notice.endswith(where), "the way to the other file")
    await stage.press("right_square_bracket")
    await stage.until(lambda: stage.path == "pkg/things.py", "the other file")


async def first_line_becomes(stage: Stage, project: Path, text: str) -> None:
    """Have a proposal for the first line of a file of 200 wait for a decision."""
    lines = "".join(f"value_{n} = {n}\n" for n in range(200))
    (project / "pkg" / "long.py").write_text(lines)
    await stage.open("pkg/long.py")
    await stage.press("v")
    await stage.instruct("double it")
    stage.model.give(text)
    stage.model.give(None)
    await stage.until(lambda: stage.pane.undecided_hunk is not None, "hunk")


async def test_a_hunk_out_of_sight_is_shown_before_it_is_decided(
    stage: Stage, project: Path
) -> None:
    await first_line_becomes(stage, project, "value_0 = 00\n")
    hunk, pane = stage.pane.undecided_hunk, stage.pane
    assert hunk is not None
    pane.scroll_to_row(100)
    await stage.pilot.pause()
    await stage.press("a")
    assert hunk.state is HunkState.SETTLED
    assert "off screen" in stage.notice
    assert any("value_0 = 00" in row for row in stage.rows)
    await stage.press("a")
    await stage.until(lambda: hunk.state is HunkState.ACCEPTED, "accepted")


async def test_a_notice_covers_no_row_of_the_hunk_that_is_shown(
    stage: Stage, project: Path
) -> None:
    await first_line_becomes(stage, project, "value_0 = 00\nvalue_00 = 0\n")
    stage.screen.notices.clear()
    await stage.pilot.pause()
    pane, hunk = stage.pane, stage.pane.undecided_hunk
    assert hunk is not None
    assert pane.view is not None
    first, stop = pane.view.rows_of(hunk.id) or (0, 0)
    await stage.pilot.resize_terminal(120, 36 - (pane.height - stop))
    await stage.until(lambda: pane.height == stop, "the hunk ends where the window does")
    pane.scroll_to_row(0)
    stage.screen.notices.say("info", "A sentence that is not short. " * 12)
    await stage.until(lambda: pane.height < stop, "the window is lower")
    assert pane.shows(first, stop) or pane.top == first


async def test_a_hunk_out_of_sight_is_shown_when_a_key_is_about_it(
    stage: Stage, project: Path
) -> None:
    await first_line_becomes(stage, project, "value_0 = 00\n")
    for key in ("E", "X", "e", "c"):
        stage.screen.set_focus(stage.pane)
        stage.pane.scroll_to_row(100)
        await stage.pilot.pause()
        assert not any("value_0 = 00" in row for row in stage.rows), key
        await stage.press(key)
        await stage.until(lambda: any("value_0 = 00" in row for row in stage.rows), "shown")
        if key == "E":  # it would ask at once
            assert "off screen" in stage.notice
        else:
            assert stage.screen.panes.typing or stage.app.screen is not stage.screen, key
            await stage.press("escape")


async def test_a_name_left_undefined_is_told_after_the_outcome_of_the_key(
    stage: Stage, project: Path
) -> None:
    await stage.open("pkg/things.py")
    await stage.instruct("rename `total` to `found` in count")
    await stage.stream(
        "".join(CODE[CODE.index("def count") :].splitlines(True)[:4]).replace("total", "found")
    )
    await stage.press("ctrl+c")
    await stage.until(lambda: "Stopped" in stage.notice, "stopped")
    await stage.press("escape", "A")
    told = "`total` (pkg/things.py, line 11) is no longer defined"
    await stage.until(lambda: told in stage.notice, "told")
    assert "found = 0" in (project / "pkg" / "things.py").read_text()
    await stage.session.files.open("pkg/things.py")
    await stage.pilot.pause(0.3)
    assert stage.notice.endswith("Change it where it is still used (press E).")


async def test_a_closed_list_of_mentions_is_not_taken_from(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("see @thi")
    await stage.until(lambda: stage.composer.choosing, "list")
    assert "up/down choose" in stage.keys
    await stage.press("escape")
    assert not stage.composer.choosing
    await stage.press("tab", "tab")
    assert stage.composer.text == "see @thi"


async def test_wrapping_is_remembered(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    for wraps in (False, True):
        async with on_stage(project, settings=Settings(attention=False)) as stage:
            await stage.open("pkg/things.py")
            assert stage.pane.wrap is wraps
            if not wraps:
                await stage.press("w")


def opened_later(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Have sessions open once the event is set."""
    may_open = asyncio.Event()
    opening = PairingSession.open

    async def open_later(*arguments: object, **options: object) -> PairingSession:
        await may_open.wait()
        return await opening(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(PairingSession, "open", open_later)
    return may_open


NEED_A_SESSION = """
    changes.stage checks checks.next checks.previous commit context continuous decision.redo
    decision.undo effort failures feedback.tell file.next file.previous group.accept group.reject
    guard.file hunk.accept hunk.accept_files hunk.elsewhere hunk.next_undecided
    hunk.previous_undecided hunk.put_back_now hunk.reject hunk.reject_files hunk.reject_rest
    hunk.split models pace plan.edit plan.next review.external sessions walk walk.order
"""


async def test_what_needs_a_session_says_that_it_is_still_opening(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_open = opened_later(monkeypatch)
    app = MidstreamApp(project, Settings(journal=False, attention=False))
    async with app.run_test() as pilot:
        stage = Stage(app, pilot, SteppedModel())
        for action_id in NEED_A_SESSION.split():
            stage.screen.notices.clear()
            await stage.screen.perform(action_id)
            sentence = "The session is still opening; try again in a moment."
            assert stage.notice == sentence, action_id
            assert app.screen is stage.screen
        may_open.set()
        await stage.until(lambda: app.session is not None, "session")


@pytest.mark.parametrize("stops", [False, True])
async def test_what_is_sent_while_the_session_opens_is_sent_then(
    project: Path, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    may_open = opened_later(monkeypatch)
    model = SteppedModel()
    async with served(model) as endpoint:
        app = MidstreamApp(
            project,
            Settings(journal=False, attention=False),
            endpoint=endpoint,
            open_file="pkg/things.py",
        )
        async with app.run_test(size=(100, 30)) as pilot:
            stage = Stage(app, pilot, model)
            await stage.type("rename number in double")
            await stage.press("enter")
            await stage.until(lambda: "is sent then" in stage.notice, "told")
            if stops:
                await stage.press("ctrl+c")
                assert stage.notice == "Not sent; your text stays here."
            may_open.set()
            await stage.until(lambda: stage.path == "pkg/things.py", "opened")
            if stops:
                await stage.until(lambda: stage.session.status.state == "ready", "ready")
                assert stage.composer.text == "rename number in double"
                assert not model.requests
            else:
                await stage.until(lambda: model.requests, "request")
                assert model.region.startswith("def double")
                assert stage.composer.text == ""


@pytest.mark.parametrize("level", ["warning", "error"])
async def test_news_cover_no_warning_that_nobody_has_read(stage: Stage, level: str) -> None:
    notices = stage.screen.notices
    notices.say(level, "The last session cannot be resumed.")
    notices.say("info", "Another program changed a.py.", outcome=True, passing=True)
    assert stage.notice == "The last session cannot be resumed."
    assert notices.said[-1] == "Another program changed a.py."
    notices._shown_at -= 60
    notices.say("info", "Another program changed b.py.", outcome=True, passing=True)
    assert stage.notice == "The last session cannot be resumed."
    stage.screen.set_focus(stage.pane)
    await stage.press("j")
    notices.say("info", "Another program changed c.py.", outcome=True, passing=True)
    assert stage.notice == "Another program changed c.py."
    notices.say("info", "Committed abc. A hook changed what is committed of c.py.")
    notices.say("info", "Another program changed c.py.", outcome=True, passing=True)
    assert stage.notice.startswith("Committed")
