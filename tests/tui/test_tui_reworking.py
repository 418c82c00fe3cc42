"""Parts of hunks, their text, and saying why not: by keys, on a real session, down to the disk."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.style import Style
from rich.text import Text
from textual.widgets import Input, Static

from midstream.edits.hunks import HunkState
from midstream.edits.request import parse_request
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.hunk_editor import HunkEditor
from midstream.tui.widgets.key_bar import KeyBar
from tests.helpers.stage import CODE, Stage, on_stage

BLOCK = "    total = 0\n    for item in items:\n        if item:\n            total += 1\n"
NEW = "    found = 0\n    for thing in items:\n        if thing:\n            found += 1\n"
NEW_COUNT = CODE[CODE.index("def count") : CODE.index("\n\n\ndef double") + 1].replace(BLOCK, NEW)


async def propose(stage: Stage) -> None:
    """One undecided hunk of four replaced lines, with the cursor on its first row."""
    await stage.open("pkg/things.py")
    await stage.instruct("rename in count")
    stage.model.give(NEW_COUNT)
    stage.model.give(None)
    await stage.until(
        lambda: stage.session.status.state == "ready" and stage.session.turns.last, "end"
    )
    hunk = stage.pane.undecided_hunk
    assert hunk is not None
    assert (hunk.deleted, hunk.added) == (4, 4)
    rows = stage.view.rows_of(hunk.id)
    assert rows is not None
    stage.pane.go_to(rows[0])
    await stage.pilot.pause()


def on_disk(project: Path) -> str:
    return (project / "pkg" / "things.py").read_text()


async def test_marked_new_lines_are_accepted_alone(stage: Stage, project: Path) -> None:
    await propose(stage)
    await stage.press("j", "j", "j", "j", "v")
    assert stage.keys[:3] == ["a accept lines", "r reject lines", "s split"]
    await stage.press("a")
    wanted = CODE.replace("    total = 0\n", "    total = 0\n    found = 0\n")
    await stage.until(lambda: on_disk(project) == wanted, "write")
    assert stage.pane.mark is None
    assert "1 line accepted and written; u undoes it." in stage.notice
    assert stage.pane.undecided_hunk is not None
    await stage.press("u")
    await stage.until(lambda: on_disk(project) == CODE, "undo")
    assert [h.id for h in stage.session.hunks.undecided()] == [1]


async def test_rejected_lines_stay_and_the_rest_can_be_accepted(
    stage: Stage, project: Path
) -> None:
    await propose(stage)
    before = len([row for row in stage.rows if row.strip()])
    await stage.press("v", "j", "r")
    await stage.until(
        lambda: any(h.state is HunkState.REJECTED for h in stage.session.hunks), "rejected"
    )
    assert len([row for row in stage.rows if row.strip()]) == before
    assert sum("┊" in row or "✗" in row for row in stage.rows) == 2
    await stage.press("A")  # The answer leaves `total` behind, which nothing defines any more.
    await stage.until(lambda: "1 hunk to decide one by one" in stage.notice, "flagged")
    await stage.press("a")
    await stage.until(lambda: "would not parse" in stage.notice, "question")
    assert on_disk(project) == CODE
    await stage.press("a")
    wanted = CODE.replace(BLOCK, "    total = 0\n    for item in items:\n" + NEW)
    await stage.until(lambda: on_disk(project) == wanted, "rest")


async def test_rows_side_by_side_are_decided_as_pairs(project: Path) -> None:
    async with on_stage(project, size=(200, 40)) as stage:
        await propose(stage)
        await stage.press("j", "v", "j", "a")
        middle = NEW.splitlines(keepends=True)
        lines = BLOCK.splitlines(keepends=True)
        wanted = CODE.replace(BLOCK, "".join([lines[0], *middle[1:3], lines[3]]))
        await stage.until(lambda: on_disk(project) == wanted, "write")


async def test_marks_without_a_hunk_say_so(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("v", "j", "a")
    assert stage.notice == "The marked lines belong to no undecided hunk."
    assert stage.pane.mark is not None


async def test_split_at_the_cursor_keeps_what_belongs_together(stage: Stage, project: Path) -> None:
    await propose(stage)
    await stage.press("s")
    assert "the first row of the second part" in stage.notice
    await stage.press("j", "j", "s")
    await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "split")
    assert [(h.deleted, h.added) for h in stage.session.hunks.undecided()] == [(2, 2), (2, 2)]
    assert "Split into 2 hunks; u joins them again." in stage.notice
    await stage.press("g", "]", "a")
    first = BLOCK.splitlines(keepends=True)[2:]
    wanted = CODE.replace(BLOCK, "".join([*NEW.splitlines(keepends=True)[:2], *first]))
    await stage.until(lambda: on_disk(project) == wanted, "first half")
    await stage.press("u", "u")
    await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "joined")


async def test_split_around_the_marked_rows(stage: Stage) -> None:
    await propose(stage)
    await stage.press("j", "v", "j", "s")
    await stage.until(lambda: len(stage.session.hunks.undecided()) == 3, "split")
    assert [(h.deleted, h.added) for h in stage.session.hunks.undecided()] == [
        (1, 0),
        (2, 0),
        (1, 4),
    ]


async def test_editing_a_hunk(stage: Stage, project: Path) -> None:
    await propose(stage)
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, HunkEditor), "editor")
    editor = stage.app.screen
    assert isinstance(editor, HunkEditor)
    assert editor.field.text == NEW.rstrip("\n")
    editor.field.text = "    return len(items)"
    await stage.press("escape")
    assert stage.notice == "Not saved; e continues with your text."
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, HunkEditor), "editor again")
    again = stage.app.screen
    assert isinstance(again, HunkEditor)
    assert again.field.text == "    return len(items)"
    await stage.press("ctrl+s")
    await stage.until(lambda: "has your text now" in stage.notice, "saved")
    assert any("return len(items)" in row for row in stage.rows)
    await stage.press("a")
    wanted = CODE.replace(BLOCK, "    return len(items)\n")
    await stage.until(lambda: on_disk(project) == wanted, "write")
    await stage.press("u", "u")
    await stage.until(lambda: stage.session.hunks.get(1).added == 4, "the model's text again")


@pytest.mark.system
async def test_the_hunk_editor_takes_the_colours_of_another_theme(stage: Stage) -> None:
    await propose(stage)
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, HunkEditor), "editor")
    editor = stage.app.screen
    assert isinstance(editor, HunkEditor)
    for name in ("midnight", "paper"):
        stage.app.use_theme(name)
        await stage.pilot.pause()
        palette = stage.app.palettes[name]
        gone = editor.query_one(".gone", Static).content
        assert isinstance(gone, Text)
        for text in (editor.field.get_line(1), gone):
            styles = [span.style for span in text.spans if isinstance(span.style, Style)]
            assert palette.token_styles["keyword"].color in {style.color for style in styles}


async def test_the_hunk_editor_has_keys_colours_and_the_users_editor(
    stage: Stage, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MidstreamApp, "suspend", lambda self: nullcontext())
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    await propose(stage)
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, HunkEditor), "editor")
    editor = stage.app.screen
    assert isinstance(editor, HunkEditor)
    keys = [f"{hint.key} {hint.words}" for hint in editor.query_one(KeyBar).hints]
    assert keys == ["ctrl+s save, undecided", "ctrl+g editor", "esc leave, keep the text"]
    colours = {
        text[span.start : span.end]: span.style
        for row in (1, 2)
        for line in (editor.field.get_line(row),)
        for text in (line.plain,)
        for span in line.spans
    }
    assert colours["for"] == colours["if"] != colours.get("items")
    await stage.press("ctrl+g")
    words = editor.query_one(".words", Static)
    assert "There is no editor to open" in str(words.render())
    assert words.display
    program = tmp_path / "editor"
    program.write_text('#!/bin/sh\nprintf "    return 1\\n    # %s\\n" "$(basename "$1")" > "$1"\n')
    program.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(program))
    await stage.press("ctrl+g")
    await stage.until(lambda: editor.field.text == "    return 1\n    # hunk.py", "edited")
    await stage.press("ctrl+s")
    await stage.until(lambda: "has your text now" in stage.notice, "saved")
    assert any("return 1" in row for row in stage.rows)


@pytest.mark.parametrize("theme", ["midnight", "paper"])
async def test_the_lines_that_a_hunk_takes_away_can_be_read_beside_it(
    project: Path, theme: str
) -> None:
    settings = Settings(journal=False, attention=False, theme=theme)
    async with on_stage(project, settings=settings) as stage:
        await propose(stage)
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, HunkEditor), "editor")
        gone = stage.app.screen.query_one(".gone", Static)
        assert str(gone.render()).startswith("-     total = 0\n")
        ground, ink = gone.background_colors[1], gone.styles.color
        assert ground.rgb == stage.app.palette.colors["deleted"].rgb
        assert ink.rgb == stage.app.palette.colors["foreground"].rgb


async def test_an_edit_that_changes_nothing_is_not_a_hunk(stage: Stage) -> None:
    await propose(stage)
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, HunkEditor), "editor")
    editor = stage.app.screen
    assert isinstance(editor, HunkEditor)
    editor.field.text = BLOCK.rstrip("\n")
    await stage.press("ctrl+s")
    await stage.until(lambda: "r rejects the hunk" in stage.notice, "notice")
    assert stage.session.hunks.get(1).added == 4


async def test_without_a_hunk_they_say_what_to_do(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    for key in ("e", "s", "X"):
        stage.screen.panes.notice.clear()
        await stage.press(key)
        assert stage.notice == "Put the cursor on a hunk first.", key
        assert stage.app.screen is stage.screen


async def test_rejecting_with_a_reason(stage: Stage) -> None:
    await propose(stage)
    await stage.press("X")
    await stage.pilot.press("n", "o", "space", "a", "escape")
    await stage.pilot.pause()
    assert stage.session.hunks.get(1).state is HunkState.SETTLED
    assert stage.pane.has_focus
    await stage.press("X")
    assert stage.screen.query_one("#reason Input", Input).value == "no a"
    await stage.press("enter")
    await stage.until(lambda: stage.session.hunks.get(1).state is HunkState.REJECTED, "rejected")
    assert stage.session.hunks.get(1).note == "no a"
    assert any(row.endswith("rejected: no a") for row in stage.rows)


OLD_COUNT = CODE[CODE.index("def count") : CODE.index("\n\n\ndef double") + 1]


async def asked_again(stage: Stage, why: str) -> tuple[str, str]:
    """The instruction and the lines that a rejection with this reason sends."""
    await stage.press("X")
    await stage.pilot.press(*("space" if key == " " else key for key in why), "alt+enter")
    await stage.until(lambda: len(stage.model.requests) == 2, "request")
    request = parse_request(stage.model.requests[-1].messages[-1].text)
    assert request is not None
    return request.instruction, request.region


async def test_rejecting_and_asking_again(stage: Stage) -> None:
    await propose(stage)
    assert await asked_again(stage, "use len") == ("use len", OLD_COUNT)
    assert stage.session.hunks.get(1).note == "use len"
    stage.model.give(None)


async def test_asking_again_for_a_new_function(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.instruct("add third below count")
    stage.model.give(f"{OLD_COUNT}\n\ndef third():\n    return 3\n")
    stage.model.give(None)
    await stage.until(lambda: stage.session.hunks.undecided() and not stage.session.turns.busy)
    assert await asked_again(stage, "a float") == ("add third below count. a float", OLD_COUNT)
    stage.model.give(None)


async def test_a_decided_hunk_is_left_alone(stage: Stage) -> None:
    await propose(stage)
    await stage.press("r")
    await stage.until(lambda: stage.session.hunks.get(1).state is HunkState.REJECTED, "rejected")
    await stage.press("e")
    assert stage.notice == "This hunk is decided; u undoes that."


async def test_invisible_characters_are_not_put_into_an_editor(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename in count")
        stage.model.give(NEW_COUNT.replace("found", "fo\x1bund"))
        stage.model.give(None)
        await stage.until(
            lambda: stage.session.status.state == "ready" and stage.session.turns.last, "end"
        )
        await stage.press("e")
        assert "invisible characters" in stage.notice
        assert stage.app.screen is stage.screen
