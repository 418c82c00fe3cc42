"""Terminals that are poor in something: colours, characters, size; and those that have a mouse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from textual import events
from textual.geometry import Region

from midstream.pairing.activity import Activity
from midstream.settings import Settings
from midstream.tui.pages.models import ModelsScreen
from midstream.tui.widgets.file_bar import FileBar, FileFacts
from midstream.tui.widgets.status_row import StatusFacts, StatusRow
from midstream.workspace.drafts import read_drafts
from midstream.workspace.paths import state_dir
from tests.helpers.pages import answered, make_repo
from tests.helpers.stage import Stage, on_stage

NEW = "def double(number):\n    return number + number\n"


def screen_text(stage: Stage) -> str:
    """Every cell of the top screen."""
    return "\n".join(strip.text for strip in stage.app.screen._compositor.render_strips())


async def test_ascii_only_draws_ascii_only(project: Path) -> None:
    settings = Settings(journal=False, ascii=True)
    async with on_stage(project, size=(160, 40), settings=settings) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename number in double")
        stage.model.give(NEW)
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunk")
        assert screen_text(stage).isascii()
        for key in ("question_mark", "escape", "colon"):
            await stage.press(key)
            assert screen_text(stage).isascii()


async def test_no_color_leaves_glyphs_that_tell_the_states(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename number in double")
        stage.model.give(NEW)
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunk")
        pane = stage.pane
        strips = pane.render_lines(Region(0, 0, *pane.size))
        for strip in strips:
            for segment in strip:
                for color in (segment.style.color, segment.style.bgcolor):
                    assert color is None or color.is_default, "greys are colours, too"
        text = "\n".join(strip.text for strip in strips)
        assert "- " in text
        assert "+ " in text
        await stage.press("a")
        await stage.until(lambda: "✓" in "\n".join(stage.rows), "mark of an accepted hunk")


@pytest.mark.parametrize("width", [80, 160])
async def test_a_file_that_nobody_knows_is_told_with_the_keys(project: Path, width: int) -> None:
    (project / "a.yml").write_text("a: 1\n")
    async with on_stage(project, size=(width, 30)) as stage:
        await stage.open("a.yml")
        row = stage.screen.query_one(StatusRow)
        words = "unguarded: only credentials are looked for here"
        await stage.until(lambda: words in row.render().plain, "guard")
        await stage.press("i")
        await stage.type("rename a to b")
        await stage.press("enter")
        await stage.until(lambda: stage.notice, "sentence")
        assert stage.notice == (
            "This model edits Python only, and a.yml is yaml; Esc, then M chooses another model."
        )


async def test_a_click_on_what_is_counted_goes_there(project: Path) -> None:
    async with on_stage(project) as stage:
        await answered(stage)
        await stage.open("notes.md")
        bar = stage.screen.query_one(FileBar)
        await stage.until(lambda: "2 in other files" in bar.render().plain, "counted")
        await stage.pilot.click(bar, offset=(bar.render().plain.index("in other"), 0))
        await stage.until(lambda: stage.path == "pkg/things.py", "file")
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "hunk")
        row = stage.screen.query_one(StatusRow)
        await stage.pilot.click(row, offset=(row.render().plain.index("stepped"), 0))
        await stage.until(lambda: isinstance(stage.app.screen, ModelsScreen), "models")


async def test_the_mouse_moves_scrolls_and_presses_hints(project: Path) -> None:
    async with on_stage(project, size=(160, 30)) as stage:
        await stage.open("pkg/things.py")
        pane = stage.pane
        await stage.pilot.click(pane, offset=(20, 4))
        assert pane.cursor == 4
        await stage.pilot.click("#keys", offset=(3, 0))
        await stage.pilot.pause()
        assert stage.composer.field.has_focus
        row = next(y for y, r in enumerate(stage.rail.rows) if r.value == "notes.md")
        await stage.pilot.click("#rail", offset=(3, row))
        await stage.until(lambda: stage.path == "notes.md", "opened with the mouse")


async def test_a_drag_marks_lines_and_a_click_takes_the_mark_away(project: Path) -> None:
    async with on_stage(project, size=(120, 30)) as stage:
        await stage.open("pkg/things.py")
        pane = stage.pane
        await stage.pilot.mouse_down(pane, offset=(20, 6))
        for y in (6, 7, 9):
            # The pilot's own move holds no button.
            x, down = pane.region.x + 20, pane.region.y + y
            stage.app.post_message(
                events.MouseMove(pane, 20, y, 0, 1, 1, False, False, False, x, down)
            )
            await stage.pilot.pause()
        await stage.pilot.mouse_up(pane, offset=(20, 9))
        assert pane.selection_rows == (6, 10)
        await stage.until(lambda: "esc unmark" in stage.keys, "keys for marked lines")
        await stage.press("y")
        assert stage.notice == "Copied 4 lines."
        await stage.pilot.click(pane, offset=(20, 3))
        assert pane.selection_rows is None
        assert pane.cursor == 3
        # A mark of the keyboard is kept by a click, which marks up to there.
        await stage.press("v")
        await stage.pilot.click(pane, offset=(20, 5))
        assert pane.selection_rows == (3, 6)


@pytest.mark.parametrize("size", [(40, 10), (20, 6), (200, 60)])
async def test_odd_sizes_do_not_fall_over(project: Path, size: tuple[int, int]) -> None:
    async with on_stage(project, size=size) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename number in double")
        stage.model.give(NEW)
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunk")
        await stage.press("question_mark", "escape", "t", "t", "t", "z", "G", "g")
        assert stage.app.is_running


async def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        await stage.press("escape")
        await stage.press("o")
        assert "no files yet" in stage.notice


async def test_a_save_by_an_editor_shows_and_moves_hunks(project: Path) -> None:
    async with on_stage(project) as stage:
        path = project / "pkg" / "things.py"
        await stage.open("pkg/things.py")
        await stage.instruct("rename number in double")
        stage.model.give(NEW)
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunk")
        (hunk,) = stage.session.hunks.undecided()
        before = stage.view.rows_of(hunk.id)[0]
        path.write_text("# one more line\n" + path.read_text())
        await stage.until(lambda: stage.view.rows_of(hunk.id)[0] == before + 1, "the hunk moves")
        await stage.press("a")
        await stage.until(lambda: "number + number" in path.read_text(), "write")
        assert path.read_text().startswith("# one more line\n")


async def test_what_was_typed_and_sent_survives_a_quit(project: Path) -> None:
    async with on_stage(project, settings=Settings()) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename total in count")
        stage.model.give(None)
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        await stage.press("i")
        stage.composer.put("")
        await stage.type("half a sentence")
        await stage.until(lambda: stage.composer.text == "half a sentence", "typed")
    async with on_stage(project, settings=Settings()) as stage:
        await stage.until(lambda: stage.composer.text == "half a sentence", "draft")
        assert "unsent text of last time" in stage.notice
        await stage.type("new")
        await stage.until(lambda: stage.composer.text == "new", "in its place")
        await stage.press("up")
        assert stage.composer.text == "rename total in count"
        await stage.press("ctrl+u")
        stage.composer.put("")
        await stage.pilot.pause()
    async with on_stage(project, settings=Settings(journal=False)) as stage:
        assert stage.session.drafts is None
        assert stage.composer.text == ""
    async with on_stage(project, settings=Settings()) as stage:
        assert stage.composer.text == ""


@pytest.mark.system
async def test_an_erased_draft_is_gone_even_if_the_program_is_killed(project: Path) -> None:
    """No clean-up runs after a kill, so the test looks at the disk before it quits."""
    async with on_stage(project, settings=Settings()) as stage:
        await stage.type("qq")
        await stage.until(lambda: stage.composer.text == "qq", "typed")
    async with on_stage(project, settings=Settings()) as stage:
        await stage.until(lambda: stage.composer.text == "qq", "it was left at the quit")
        await stage.press("backspace", "backspace")
        await stage.until(lambda: not read_drafts(state_dir(), project).draft, "gone on the disk")
        await stage.type("something else")
        await stage.until(lambda: stage.composer.text == "something else", "typed")
        assert read_drafts(state_dir(), project).draft == ""
    assert read_drafts(state_dir(), project).draft == "something else"


async def test_what_gives_way_in_the_status_row(project: Path) -> None:
    facts = StatusFacts(
        doing=Activity.READY,
        model="model-4m",
        continuous=True,
        watching="native",
        guard="guarded",
        branch="main",
        dirty=2,
    )
    async with on_stage(project, size=(40, 12)) as stage:
        row = stage.screen.query_one(StatusRow)
        seen: dict[int, str] = {}
        for width in (80, 66, 54, 47, 40):
            await stage.pilot.resize_terminal(width, 12)
            await stage.until(lambda width=width: row.size.width == width, "resize")
            row.show(facts)
            seen[width] = " ".join(row.render().plain.split()[3:])
        assert seen == {
            80: "continuous guarded watching main · 2 changed",
            66: "continuous guarded main · 2 changed",
            54: "continuous main · 2 changed",
            47: "continuous 2 changed",
            40: "continuous",
        }


async def test_how_far_the_model_is_outlasts_what_stays_the_same(project: Path) -> None:
    facts = StatusFacts(
        doing=Activity.READING,
        model="built-in",
        reading="1.8k of 3.0k tokens, 12 s left",
        watching="native",
        guard="guarded",
        branch="main",
    )
    async with on_stage(project, size=(80, 24)) as stage:
        row = stage.screen.query_one(StatusRow)
        row.show(facts)
        words = " ".join(row.render().plain.split()[1:])
        assert words == "reading built-in 1.8k of 3.0k tokens, 12 s left guarded main · clean"


async def test_a_fact_that_is_too_long_leaves_its_room_to_others(project: Path) -> None:
    facts = StatusFacts(
        doing=Activity.READY,
        model="built-in",
        watching="native",
        reviewing=True,
        guard="unguarded: only credentials are looked for here",
        branch="main",
        dirty=13,
    )
    async with on_stage(project, size=(80, 24)) as stage:
        row = stage.screen.query_one(StatusRow)
        row.show(facts)
        words = " ".join(row.render().plain.split()[1:])
        assert words == "ready built-in unguarded reviewing main · 13 changed"


async def test_what_waits_stays_in_the_row_above_the_code(project: Path) -> None:
    facts = FileFacts(
        path="pkg/things.py",
        position="hunk 3 of 1234",
        undecided=1234,
        accepted=17,
        rejected=5,
        conflicts=2,
        held=1,
        elsewhere=45,
        writing_in="pkg/things.py",
        following=True,
    )
    async with on_stage(project, size=(100, 12)) as stage:
        await stage.open("pkg/things.py")
        bar = stage.screen.query_one(FileBar)
        seen: dict[int, str] = {}
        for width in (100, 80, 60):
            await stage.pilot.resize_terminal(width, 12)
            await stage.until(lambda width=width: bar.size.width == width, "resize")
            bar.show(facts)
            seen[width] = " ".join(bar.render().plain.split("things.py")[1].split())
        waiting = "2 in conflict · 1 held back · 1,234 to decide"
        assert seen == {
            100: f"{waiting} · 45 in other files following",
            80: f"{waiting} following",
            60: waiting,
        }


async def test_a_merge_that_is_not_finished_is_told_beside_the_branch(project: Path) -> None:
    def git(*arguments: str, check: bool = True) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *arguments], cwd=project, check=check, capture_output=True)

    git("init", "-q", "-b", "main")
    for begin, text in (
        (("-b", "first"), "one"),
        (("-b", "other"), "two"),
        (("-B", "main", "first"), "three"),
    ):
        git("checkout", "-q", *begin)
        (project / "notes.md").write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", text)
    async with on_stage(project) as stage:
        row = stage.screen.query_one(StatusRow)
        await stage.until(lambda: "main · clean" in row.render().plain, "clean")
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        git("merge", "-q", "other", check=False)
        await stage.until(lambda: "main merging · 1 changed" in row.render().plain, "merging")
        git("merge", "--abort")
        await stage.until(lambda: "main · clean" in row.render().plain, "clean again")


async def test_the_title_of_a_small_screen_keeps_the_lines(project: Path) -> None:
    async with on_stage(project, size=(40, 12)) as stage:
        await stage.open("pkg/things.py")
        stage.pane.go_to(8)
        await stage.until(lambda: "lines 6-13" in stage.title, "lines")
        assert stage.title.startswith("── Instruct · count, lines 6-13 ")


async def test_a_long_text_leaves_room_for_the_code(project: Path) -> None:
    async with on_stage(project, size=(40, 12)) as stage:
        await stage.open("pkg/things.py")
        await stage.press("i")
        stage.composer.put("\n".join(f"line {n}" for n in range(20)))
        await stage.until(lambda: stage.composer.field.size.height > 1, "grown")
        assert stage.composer.field.size.height <= 4
        assert stage.pane.size.height >= 4


async def test_a_pasted_block_comes_back_as_its_chip(project: Path) -> None:
    block = "".join(f"line {n}\n" for n in range(30))
    async with on_stage(project, settings=Settings()) as stage:
        await stage.open("pkg/things.py")
        await stage.press("i")
        await stage.type("like ")
        stage.composer.field.post_message(events.Paste(block))
        await stage.until(lambda: stage.composer.text == f"like {block}", "pasted")
    async with on_stage(project, settings=Settings()) as stage:
        composer = stage.composer
        await stage.until(lambda: composer.field.text == "like [pasted 30 lines]", "draft")
        assert composer.text == f"like {block}"
        # A block that the user has opened stays open.
        await stage.press("ctrl+t")
        assert composer.field.text == f"like {block}"
        await stage.pilot.pause()
    async with on_stage(project, settings=Settings()) as stage:
        composer = stage.composer
        await stage.until(lambda: bool(composer.text), "draft")
        assert composer.field.text == f"like {block}"


def rail_names(stage: Stage) -> list[str]:
    rows = ("".join(text for text, _ in row.left) for row in stage.rail.rows)
    return [row.strip() for row in rows]


async def test_folders_of_the_rail_fold_by_keys_and_by_clicks(project: Path) -> None:
    (project / "pkg" / "inner").mkdir()
    (project / "pkg" / "inner" / "deep.py").write_text("x = 1\n")
    (project / ".github").mkdir()
    (project / ".github" / "ci.yml").write_text("a: 1\n")
    make_repo(project)
    async with on_stage(project, size=(160, 40)) as stage:
        await stage.until(lambda: len(stage.files) == 4, "files")
        files = rail_names(stage)[1:]
        assert files == [
            "notes.md", "▿ pkg/", "things.py", "▿ inner/", "deep.py", "▹ .github/"
        ]  # fmt: skip
        await stage.press("tab")
        assert stage.rail.has_focus
        await stage.press("G")
        assert stage.rail.value == ".github/"
        assert stage.keys[0] == "enter unfold"
        await stage.press("l", "l")
        assert stage.rail.value == ".github/ci.yml"
        await stage.press("h", "h")
        assert stage.rail.value == ".github/"
        assert rail_names(stage)[-1] == "▹ .github/"
        await stage.press("k", "h", "h")
        assert stage.rail.value == "pkg/inner/"
        assert "deep.py" not in rail_names(stage)
        await stage.press("enter")
        assert "deep.py" in rail_names(stage)
        await stage.press("g")
        row = next(y for y, r in enumerate(stage.rail.rows) if r.value == "pkg/")
        await stage.pilot.click("#rail", offset=(3, row))
        assert rail_names(stage)[1:] == ["notes.md", "▹ pkg/", "▹ .github/"]
        assert stage.path == ""
        await stage.open("pkg/inner/deep.py")
        await stage.until(lambda: rail_names(stage).count("deep.py") == 2, "the open file is shown")


async def test_a_large_folder_is_folded_but_for_the_open_file(project: Path) -> None:
    for folder in ("alpha", "beta"):
        (project / folder).mkdir()
        for number in range(60):
            (project / folder / f"test_of_a_thing_with_a_long_name_{number}.py").write_text("")
    async with on_stage(project, size=(160, 40)) as stage:
        await stage.until(lambda: len(stage.files) == 122, "files")
        assert rail_names(stage)[1:] == ["notes.md", "▹ alpha/", "▹ beta/", "▹ pkg/"]
        await stage.open("beta/test_of_a_thing_with_a_long_name_7.py")
        await stage.until(lambda: len(rail_names(stage)) > 60, "unfolded")
        names = rail_names(stage)
        assert "▹ alpha/" in names
        inside = names[names.index("▿ beta/") + 1 : names.index("▹ pkg/")]
        assert len(set(inside)) == 60, "the ends of the names tell them apart"
        assert all(len(name) < stage.rail.size.width for name in inside)


async def test_the_rail_shows_each_folder_once(project: Path) -> None:
    for name in ("a.py", "Z/b.py", "z.py"):
        (project / "pkg" / name).parent.mkdir(exist_ok=True)
        (project / "pkg" / name).write_text("x = 1\n")
    async with on_stage(project, size=(160, 40)) as stage:
        await stage.until(lambda: len(stage.files) == 5, "files")
        assert "tab files" in stage.keys
        heads = ["".join(t for t, _ in row.left) for row in stage.rail.rows]
        assert heads.count("▿ pkg/") == 1
        assert heads.index("▿ pkg/") < heads.index("  ▿ Z/") < heads.index("    b.py")
