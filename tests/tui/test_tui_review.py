"""The review screen, driven by keys: real session, server and files; only the model is scripted."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.geometry import Region
from textual.widgets import Input

from midstream.actions import ACTIONS
from midstream.pairing.activity import Activity
from midstream.tui import notices
from midstream.tui.pages.help import HelpScreen
from midstream.tui.pages.sheet import KeySheet
from midstream.tui.widgets.file_bar import FileBar, FileFacts
from midstream.tui.widgets.status_row import StatusFacts, StatusRow
from tests.helpers.pages import make_repo
from tests.helpers.stage import CODE, Stage, on_stage

NEW_COUNT = (
    "def count(items):\n",
    '    """Count the items that are true."""\n',
    "    found = 0\n",
    "    for item in items:\n",
    "        if item:\n",
    "            found += 1\n",
    "    print(found, file=sys.stderr)\n",
    "    return found\n",
)


async def start(stage: Stage) -> None:
    """Open the file and let the model begin to rename in ``count``."""
    await stage.open("pkg/things.py")
    await stage.instruct("rename total in count")


async def test_first_screen_says_what_to_do(stage: Stage) -> None:
    assert stage.composer.field.has_focus
    assert "f1 keys" in stage.keys
    await stage.press("escape", "o")
    await stage.type("thin")
    await stage.press("enter")
    await stage.until(lambda: stage.path == "pkg/things.py", "file")
    assert any("def count(items):" in row for row in stage.rows)
    assert stage.pane.has_focus


async def test_title_names_the_lines_an_instruction_gets(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("j", "j", "j", "j", "j", "j", "j")
    assert "count, lines 6-13" in stage.title
    assert stage.pane.strips.scope == (5, 13)
    await stage.press("v", "j")
    assert "lines 8-9" in stage.title
    await stage.press("escape", "i")
    await stage.type("rename number in double")
    await stage.until(lambda: "double, lines 16-17" in stage.title, "title follows the text")


async def test_the_title_leaves_out_folders_before_the_lines(project: Path) -> None:
    deep = project / "a_folder_with_a_long_name" / "and_another_one" / "things.py"
    deep.parent.mkdir(parents=True)
    deep.write_text(CODE)
    async with on_stage(project, size=(80, 24)) as stage:
        await stage.open("a_folder_with_a_long_name/and_another_one/things.py")
        stage.pane.go_to(8)
        await stage.until(lambda: "lines 6-13" in stage.title, "lines")
        assert "Instruct · things.py  count, lines 6-13" in stage.title


@pytest.mark.parametrize("name", ["a" * 200, "\u6f22" * 100], ids=["narrow", "wide"])
async def test_a_long_file_name_leaves_room_for_what_waits(stage: Stage, name: str) -> None:
    await stage.open("pkg/things.py")
    bar = stage.screen.query_one(FileBar)
    bar.show(FileFacts(path=f"folder/{name}.py", undecided=1))
    shown = bar.render()
    assert shown.plain.endswith(" 1 to decide")
    assert "…" in shown.plain
    assert shown.cell_len <= bar.size.width


async def test_accept_a_settled_hunk_while_the_rest_streams(stage: Stage, project: Path) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:5]))
    assert "a accept" in stage.keys
    assert "ctrl+c stop" in stage.keys
    rows = stage.rows
    assert any(row.split()[-3:] == ["total", "=", "0"] and "-" in row for row in rows)
    await stage.press("a")
    path = project / "pkg" / "things.py"
    await stage.until(lambda: "found = 0" in path.read_text(), "write")
    assert path.read_text() == CODE.replace("total = 0", "found = 0")
    await stage.stream("".join(NEW_COUNT[5:]))
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    assert path.read_text() == CODE.replace("total = 0", "found = 0")
    await stage.press("A")
    head, tail = CODE.split("def double")
    await stage.until(
        lambda: path.read_text() == head.replace("total", "found") + "def double" + tail, "rest"
    )
    assert "undoes it" in stage.notice
    await stage.press("u")
    await stage.until(lambda: path.read_text() == CODE.replace("total = 0", "found = 0"), "undo")
    await stage.press("u")
    await stage.until(lambda: path.read_text() == CODE, "undo all")
    await stage.press("U")
    await stage.until(lambda: "found = 0" in path.read_text(), "redo")


async def test_a_rejected_hunk_keeps_its_rows_until_it_is_folded_or_the_next_turn(
    stage: Stage, project: Path
) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT))
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    first = stage.pane.undecided_hunk
    assert first is not None
    before = stage.rows
    await stage.press("r")
    await stage.until(lambda: first.state == "rejected", "rejected")
    texts = [row[9:].rstrip() for row in before]
    assert [row[9:].rstrip() for row in stage.rows] == texts
    (kept,) = [row for row in stage.rows if "total = 0" in row]
    (rejected,) = [row for row in stage.rows if "found = 0" in row]
    assert kept.split()[-5:] == ["8", "┊", "total", "=", "0"]
    assert rejected.split()[-5:] == ["✗", "+", "found", "=", "0"]
    second = stage.pane.undecided_hunk
    assert second is not None
    assert second.id != first.id
    assert (project / "pkg" / "things.py").read_text() == CODE
    await stage.press("K", "z")
    assert any("1 line rejected" in row for row in stage.rows)
    assert not any("found = 0" in row for row in stage.rows)
    await stage.press("z")
    assert any("found = 0" in row for row in stage.rows)
    await stage.press("G")
    await stage.instruct("once more")
    await stage.press("escape", "g")
    await stage.until(lambda: any("1 line rejected" in row for row in stage.rows), "fold")
    stage.model.give(None)


async def test_pending_lines_are_neutral_and_unread_lines_are_not_deleted(stage: Stage) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:3]) + "    for it")
    signs = {row[15:].strip()[:1] for row in stage.rows if "found" in row or "for it" in row}
    assert any("~" in row and "found = 0" in row for row in stage.rows)
    assert any("~" in row and "for it" in row for row in stage.rows)
    assert signs
    unread = [row for row in stage.rows if row.endswith("return total")]
    assert len(unread) == 1
    assert "-" not in unread[0]
    assert not any(" - " in row for row in stage.rows)


async def test_stop_keeps_what_has_settled(stage: Stage, project: Path) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:4]) + "        if it")
    await stage.press("ctrl+c")
    await stage.until(lambda: stage.session.status.state == "ready", "stopped")
    await stage.until(lambda: "Stopped after" in stage.notice, "notice")
    assert [hunk.state for hunk in stage.session.hunks] == ["settled"]
    assert any(row.endswith("return total") for row in stage.rows)
    await stage.press("a")
    path = project / "pkg" / "things.py"
    await stage.until(lambda: path.read_text() == CODE.replace("total = 0", "found = 0"), "write")


async def test_enter_while_streaming_redirects(stage: Stage) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:4]))
    await stage.press("i")
    await stage.type("keep the loop")
    assert stage.keys[0] == "enter redirect now"
    assert "Redirect" in stage.title
    await stage.press("enter")
    await stage.until(lambda: len(stage.model.requests) == 2, "second request")
    texts = [message.text for message in stage.model.requests[1].messages]
    assert texts[1].rstrip("\n") == "".join(NEW_COUNT[:4]).rstrip("\n")
    assert "keep the loop" in texts[2]
    await stage.stream("".join(NEW_COUNT[4:]))
    assert stage.pane.following
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    segment = stage.session.files["pkg/things.py"].segments[0]
    assert segment.new_text == "".join(NEW_COUNT)


async def test_the_view_is_never_told_off_while_it_goes_to_the_writing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.open("pkg/things.py")
    told: list[str] = []
    bar = stage.screen.query_one(FileBar)
    show = bar.show

    def listen(facts: FileFacts) -> None:
        show(facts)
        told.append(bar.render().plain)

    monkeypatch.setattr(bar, "show", listen)
    await stage.instruct("rename total in count")
    await stage.until(lambda: stage.pane.following, "following")
    await stage.stream("".join(NEW_COUNT[:2]))
    assert any("following" in row for row in told)
    assert not any("not following" in row or "writing in" in row for row in told), told


async def test_the_status_row_has_rates_and_a_word_for_every_kind_of_waiting(
    stage: Stage,
) -> None:
    row = stage.screen.query_one(StatusRow)
    seen: set[str] = set()
    for doing in Activity:
        row.show(StatusFacts("m", doing, 50.0 if doing is Activity.WRITING else None))
        seen.add(" ".join(row.render().plain.split()[:2]))
    assert len(seen) == len(Activity)
    row.show(StatusFacts("m", Activity.THINKING, waited_s=12.4))
    assert row.render().plain.split()[:5] == ["◑", "thinking", "m", "12", "s"]
    running = StatusFacts("m", Activity.WRITING, 50.0, (10.0, 25.0, 50.0))
    row.show(running)
    assert "█" in row.render().plain
    row.show(replace(running, doing=Activity.READY, rate=None))
    assert "█" not in row.render().plain
    assert "tok/s" not in row.render().plain


@pytest.mark.system
@pytest.mark.parametrize("width", [80, 120, 160])
async def test_the_status_row_keeps_still_from_one_answer_to_the_next(
    project: Path, width: int
) -> None:
    make_repo(project)
    words = ("ready", "reading", "writing", "stepped", "tok/s", "first", "tokens")
    words += ("guarded", "watching", "main", "clean", "changed")
    async with on_stage(project, size=(width, 30)) as stage:
        row = stage.screen.query_one(StatusRow)
        seen: dict[str, set[int]] = {}

        def look() -> str:
            text = row.render().plain
            for word in words:
                if word in text:
                    seen.setdefault(word, set()).add(text.index(word))
            return text

        await stage.open("pkg/things.py")
        await stage.until(lambda: "main" in look(), "repository")
        for old, name in (("total", "found"), ("found", "seen"), ("seen", "known")):
            stage.pane.go_to(5)
            await stage.instruct(f"rename {old} to {name}")
            await stage.until(lambda: "reading" in look(), "reading")
            for line in NEW_COUNT:
                stage.model.give(line.replace("found", name))
                await stage.pilot.pause(0.15)
                look()
            stage.model.give(None)
            await stage.until(lambda: "ready" in look(), "end")
            await stage.press("A", "A")
            await stage.until(lambda: "changed" in look(), "written")
        assert {word: places for word, places in seen.items() if len(places) > 1} == {}
        assert {"tok/s", "guarded", "main"} <= seen.keys()


async def test_following_ends_when_the_reader_moves(stage: Stage) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:2]))
    pane = stage.pane
    assert pane.following
    await stage.press("g")
    assert not pane.following
    top = pane.top
    await stage.stream("".join(NEW_COUNT[2:]))
    assert pane.top == top
    assert pane.cursor == 0
    await stage.press("f")
    assert pane.following


async def test_the_first_hunk_comes_back_when_the_writing_ends_below_all(
    stage: Stage, project: Path
) -> None:
    body = "".join(f"    step({n})\n" for n in range(50))
    (project / "pkg" / "long.py").write_text(f"def run():\n    total = 0\n{body}    return 1\n")
    await stage.open("pkg/long.py")
    stage.pane.mark = 0
    stage.pane.go_to(52)
    await stage.instruct("rename total to count")
    await stage.stream(f"def run():\n    count = 0\n{body}")
    pane = stage.pane
    assert pane.following
    assert not any("count = 0" in row for row in stage.rows)
    stage.model.give("    return 1\n")
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    await stage.until(lambda: any("count = 0" in row for row in stage.rows), "shown")
    await stage.press("a")
    await stage.until(lambda: "count = 0" in (project / "pkg/long.py").read_text(), "written")


async def test_no_line_is_shown_twice_once_what_was_accepted_is_part_of_the_base(
    stage: Stage, project: Path
) -> None:
    path = project / "pkg" / "things.py"
    await start(stage)
    more = [NEW_COUNT[0], "    # one\n", "    # two\n", *CODE.splitlines(True)[6:13]]
    await stage.stream("".join(more))
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    await stage.press("a")
    await stage.until(lambda: "# two" in path.read_text(), "write")
    await stage.session.files.changed(["pkg/things.py"])
    await stage.pilot.pause()
    assert stage.session.files["pkg/things.py"].base.lines == tuple(path.read_text().splitlines())
    shown = [stage.view.row(y) for y in range(stage.view.size)]
    assert [row.text for row in shown if row.look != "deleted"] == path.read_text().splitlines()


async def test_an_answer_that_nobody_can_have_read_is_shown_from_its_first_hunk(
    stage: Stage, project: Path
) -> None:
    body = "".join(f"    step({n})\n" for n in range(50))
    old = f"def run():\n    total = 0\n{body}    return total\n"
    (project / "pkg" / "long.py").write_text(old)
    await stage.open("pkg/long.py")
    stage.session.attention.on = True
    await stage.instruct("rename total to count in run")
    await stage.stream(f"def run():\n    count = 0\n{body}    return count\n")
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    await stage.until(lambda: any("count = 0" in row for row in stage.rows), "shown")
    first = min(stage.session.hunks, key=lambda hunk: hunk.start)
    assert stage.pane.hunk is first


async def test_the_hunks_of_a_redirected_answer_stay_in_sight(stage: Stage, project: Path) -> None:
    body = "".join(f"    step({n})\n" for n in range(50))
    names = "\n\nstep = total = found = 0\n"
    (project / "pkg" / "long.py").write_text(f"def run():\n{body}    return total\n{names}")
    await stage.open("pkg/long.py")
    await stage.instruct("rename total to count in run")
    await stage.stream("def run():\n    step(0)\n")
    await stage.press("i")
    stage.composer.put("rename total to found")
    await stage.press("enter")
    await stage.until(lambda: len(stage.model.requests) == 2, "redirect")
    await stage.stream(body.split("\n", 1)[1] + "    return found\n")
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    assert stage.pane.has_focus, "as after an instruction"
    await stage.pilot.pause(0.1)
    assert any("return found" in row for row in stage.rows)


async def test_what_is_folded_fills_the_window(stage: Stage, project: Path) -> None:
    body = "".join(f"step({n})\n" for n in range(60))
    (project / "pkg" / "long.py").write_text(f"{body}total = 0\n{body}")
    await stage.open("pkg/long.py")
    stage.pane.go_to(60, centre=True)
    await stage.press("v")
    await stage.instruct("rename total to count")
    stage.model.give("count = 0\n")
    stage.model.give(None)
    await stage.until(lambda: stage.pane.undecided_hunk is not None, "hunk")
    await stage.press("z")
    assert stage.view.size < stage.pane.height
    assert "57 unchanged lines" in stage.rows[0]
    assert "57 unchanged lines" in stage.rows[stage.view.size - 1]


async def test_escape_only_closes(stage: Stage) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:2]))
    for _ in range(4):
        await stage.press("escape")
    assert stage.session.status.state == "streaming"
    await stage.press("i")
    await stage.type("half a thought")
    await stage.press("escape")
    assert stage.composer.text == "half a thought"
    assert stage.session.status.state == "streaming"


async def test_ctrl_c_twice_quits_when_idle(stage: Stage) -> None:
    await stage.press("ctrl+c")
    assert "again quits" in stage.notice
    assert not stage.app._exit
    await stage.press("ctrl+c")
    assert stage.app._exit


async def test_ctrl_c_right_after_enter_stops_what_is_not_sent_yet(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    stage.composer.put("rename total in count")
    # In one burst, before the session has heard of the instruction.
    stage.screen.steer.send()
    stage.screen.steer.stop()
    await stage.until(lambda: "Stopped before" in stage.notice, "told")
    assert stage.composer.text == "rename total in count"
    assert stage.session.status.state == "ready"
    assert not stage.session.turns
    await stage.press("enter")
    await stage.until(lambda: stage.model.requests, "request")


async def test_ctrl_c_right_after_an_answer_was_meant_for_it(stage: Stage) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT))
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    await stage.press("ctrl+c")
    assert stage.notice == "The answer had already ended; its hunks wait for your decision."
    await stage.press("ctrl+c")
    assert "again quits" in stage.notice
    assert stage.app.is_running
    await stage.press("ctrl+c")
    await stage.until(lambda: not stage.app.is_running or stage.app._exit, "quit")


async def test_history_and_newline_in_the_composer(stage: Stage) -> None:
    await start(stage)
    stage.model.give("".join(NEW_COUNT))
    stage.model.give(None)
    await stage.until(
        lambda: stage.session.status.state == "ready" and stage.session.turns.last is not None,
        "end",
    )
    await stage.press("i", "up")
    assert stage.composer.text == "rename total in count"
    await stage.press("ctrl+j")
    assert stage.composer.text == "rename total in count\n"


async def test_search_marks_and_walks(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("slash")
    await stage.type("total")
    await stage.press("enter")
    pane = stage.pane
    assert pane.cursor == 7
    assert sorted(pane.strips.found) == [7, 10, 11, 12]
    await stage.press("n")
    assert pane.cursor == 10
    await stage.press("N", "N")
    assert pane.cursor == 12
    await stage.press("escape")
    assert not pane.strips.found


async def test_copy_gives_code_without_the_gutter(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("j", "j", "j", "j", "j", "v", "j", "y")
    assert stage.app.clipboard == 'def count(items):\n    """Count the items that are true."""\n'
    assert stage.pane.mark is None


async def test_every_action_of_the_palette_exists_and_is_run_from_it(stage: Stage) -> None:
    assert all(callable(stage.screen.method(action.call)) for action in ACTIONS)
    await stage.open("pkg/things.py")
    await stage.press("colon")
    await stage.type("last row")
    await stage.press("enter")
    view = stage.view
    assert view is not None
    await stage.until(lambda: stage.pane.cursor == view.size - 1, "last row")


async def test_the_file_bar_begins_beside_the_list_that_lies_over_it(project: Path) -> None:
    async with on_stage(project, size=(100, 30)) as stage:
        await stage.open("pkg/things.py")
        bar, rail = stage.screen.query_one(FileBar), stage.rail
        before = bar.render().plain
        await stage.press("ctrl+e")
        await stage.pilot.pause()
        beside = bar.render().plain
        assert not beside[: rail.outer_size.width].strip()
        assert "things.py" in beside
        await stage.press("enter")
        await stage.until(lambda: bar.render().plain == before, "the row as before")
        await stage.press("ctrl+e", "escape")
        assert bar.render().plain == before


async def test_layouts_by_width(project: Path) -> None:
    async with on_stage(project, size=(160, 48)) as stage:
        assert stage.rail.display
        await stage.pilot.resize_terminal(100, 30)
        await stage.pilot.pause()
        assert not stage.rail.display
        await stage.press("escape", "ctrl+e")
        assert stage.rail.display
        await stage.press("escape")
        assert not stage.rail.display
        await stage.pilot.resize_terminal(60, 18)
        await stage.pilot.pause()
        assert stage.screen.has_class("-small")
        await stage.open("pkg/things.py")
        assert any("def count" in row for row in stage.rows)


async def test_the_layout_key_changes_what_is_seen_at_once(project: Path) -> None:
    async with on_stage(project, size=(120, 40)) as stage:
        await stage.open("pkg/things.py")
        pane, view = stage.pane, stage.view
        assert view is not None
        assert not view.split
        seen = []
        for _ in range(3):
            await stage.press("t")
            seen.append((pane.layout_choice, view.split))
        assert seen == [("split", True), ("unified", False), ("auto", False)]
        await stage.instruct("rename number in double")
        stage.model.give("def double(amount):\n    return amount * 2\n")
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunk")
        await stage.pilot.resize_terminal(200, 40)
        await stage.until(lambda: view.split, "automatic, with room for both sides")
        await stage.press("escape", "t")
        assert (pane.layout_choice, view.split) == ("unified", False)


async def test_a_file_that_is_no_text_is_one_sentence(stage: Stage, project: Path) -> None:
    (project / "blob.bin").write_bytes(b"\x00\x01\x02")
    stage.screen.navigate.show_path("blob.bin")
    await stage.until(lambda: "blob.bin" in stage.notice, "sentence")
    assert stage.path == ""


async def test_control_characters_never_reach_the_terminal(stage: Stage, project: Path) -> None:
    (project / "evil.py").write_text("x = '\x1b[31m\u202e'\n\ty = 1\n")
    await stage.open("evil.py")
    shown = "\n".join(stage.rows)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\u241b[31m" in shown
    assert "\t" not in shown


async def test_a_resumed_session_shows_what_is_left_to_decide(project: Path, state: Path) -> None:
    from midstream.settings import Settings
    from midstream.workspace.journal import Journal

    async with on_stage(project, settings=Settings()) as stage:
        await start(stage)
        await stage.stream("".join(NEW_COUNT))
        stage.model.give(None)
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        first = stage.pane.undecided_hunk
        assert first is not None
        await stage.press("r")
        await stage.until(lambda: first.state == "rejected", "rejected")
    journal = Journal.latest(state, project)
    assert journal is not None
    async with on_stage(project, settings=Settings(), resume=journal) as stage:
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "the hunk that is left")
        assert stage.pane.has_focus
        assert [hunk.state for hunk in stage.session.hunks].count("rejected") == 1
        assert "The last session is back" in stage.notice
        rows = stage.view.rows_of(stage.pane.undecided_hunk.id)
        assert rows is not None
        assert stage.pane.top < rows[0], "what is above the hunk is to be seen"
        await stage.press("R")
        await stage.until(lambda: not stage.session.hunks.undecided(), "all decided")
    async with on_stage(project, settings=Settings(), resume=journal) as stage:
        await stage.until(lambda: stage.pane.cursor == 5, "where the last turn was")
        assert "every hunk in it is decided" in stage.notice


async def test_letters_and_line_breaks_in_one_burst_are_text(stage: Stage) -> None:
    await stage.type("one\ntwo\nthree")
    assert stage.composer.text == "one\ntwo\nthree"
    stage.composer.put("")
    await stage.open("pkg/things.py")
    stage.screen.set_focus(stage.pane)
    await stage.type("iaAr then R")
    assert stage.composer.text == "aAr then R"


async def test_help_that_does_not_fit_is_scrolled_with_the_keyboard(project: Path) -> None:
    async with on_stage(project, size=(80, 14)) as stage:
        await stage.press("escape", "question_mark")
        sheet = stage.app.screen.query_one(KeySheet)
        await stage.until(lambda: "scroll" in str(help_screen(stage).box.border_subtitle), "told")
        await stage.press("pagedown")
        await stage.until(lambda: sheet.scroll_y > 3, "a page")
        await stage.press("G")
        await stage.until(lambda: sheet.scroll_y == sheet.max_scroll_y, "the end")
        await stage.press("g")
        await stage.until(lambda: sheet.scroll_y == 0, "the start")


async def test_every_topic_of_help_fits_on_the_smallest_terminal(project: Path) -> None:
    async with on_stage(project, size=(80, 24)) as stage:
        await stage.press("escape", "question_mark")
        screen = help_screen(stage)
        for topic in screen.topics:
            assert screen.topic is topic
            await stage.pilot.pause()
            assert screen.query_one(KeySheet).max_scroll_y == 0, topic.title
            await stage.press("tab")
        assert screen.topic is screen.topics[0]


async def test_help_is_searched_as_fast_as_one_types(stage: Stage) -> None:
    await stage.press("escape", "question_mark")
    screen = help_screen(stage)
    await stage.press("slash", "u", "n", "d", "o")
    assert screen.query_one(Input).value == "undo"
    await stage.until(lambda: "Undo the last decision" in words_of(screen), "found")
    assert "Accept the hunk" not in words_of(screen)
    await stage.press("escape")
    assert "Accept the hunk" in words_of(screen)
    await stage.press("escape")
    assert stage.app.screen is stage.screen


async def test_a_topic_of_help_is_clicked(stage: Stage) -> None:
    await stage.press("escape", "question_mark")
    screen = help_screen(stage)
    await stage.pilot.pause()
    row = screen.query_one("#topics")
    await stage.pilot.click("#topics", offset=(row.content_offset.x + len("Decide  St"), 0))
    await stage.until(lambda: screen.topic.title == "Steer", "the second topic")


async def test_what_a_later_answer_took_the_place_of_is_not_counted_beside_the_code(
    stage: Stage,
) -> None:
    bar = stage.screen.query_one(FileBar)
    await stage.open("pkg/things.py")
    for old, new in (("total", "found"), ("found", "seen")):
        stage.pane.go_to(7)
        await stage.instruct(f"rename {old} to {new}")
        stage.model.give(stage.model.region.replace(old, new))
        stage.model.end()
        await stage.until(stage.session.hunks.undecided, new)
        await stage.until(lambda: not stage.session.turns.busy, "the end")
        for hunk in list(stage.session.hunks.undecided()):
            assert await stage.session.decisions.accept(hunk.id)
        places = len(list(stage.view.places()))
        await stage.until(lambda count=places: bar.facts.accepted == count, "each once")


def help_screen(stage: Stage) -> HelpScreen:
    screen = stage.app.screen
    assert isinstance(screen, HelpScreen)
    return screen


def words_of(screen: HelpScreen) -> str:
    rows = screen._compositor.render_strips()
    return "\n".join(strip.text for strip in rows)


async def test_the_second_q_quits_while_the_sentence_stands_there(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("q", "escape", "q")
    assert "q again quits" in stage.notice
    assert not stage.app._exit
    await stage.press("q")
    await stage.until(lambda: not stage.app.is_running, "the end")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_flagged_changes_are_asked_about_at_the_first_key_that_quits(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT))
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state == "ready", "end")
    waiting = stage.session.hunks.waiting()
    monkeypatch.setattr(stage.session, "flagged_on_disk", lambda: waiting)
    await stage.press("ctrl+c", key)
    assert stage.notice.endswith("Quit anyway?")
    assert "again quits" not in stage.notice
    assert not stage.app._exit


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_a_key_that_quits_asks_again_once_its_sentence_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(notices, "FACT_S", 0.05)
    await stage.open("pkg/things.py")
    await stage.press(key)
    await stage.until(lambda: not stage.notice, "the end of the sentence")
    await stage.press(key)
    assert not stage.app._exit


async def test_without_colours_a_pane_that_is_wider_than_its_rows_can_be_painted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        pane = stage.pane
        width = pane.size.width + 4
        assert [strip.cell_length for strip in pane.render_lines(Region(0, 0, width, 3))] == [
            width
        ] * 3
