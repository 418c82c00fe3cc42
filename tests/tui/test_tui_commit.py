"""The commit page over real repositories: what is staged, what a commit takes, what hooks say."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.style import Style
from rich.text import Text
from textual.events import Paste
from textual.widgets import Static, TextArea

from midstream.edits.documents import SourceText
from midstream.pairing.files import commit as commit_module
from midstream.pairing.files.commit import Comparison, FileDiff
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.commit import CommitScreen
from midstream.tui.widgets.welcome import TourWords
from midstream.workspace import staging
from midstream.workspace.repo import recent_subjects
from tests.helpers.pages import (
    RENAMED,
    accepted,
    answered,
    at_the_files,
    git,
    hints,
    page,
    rows,
    shown,
)
from tests.helpers.stage import Stage, on_stage
from tests.helpers.waiting import PATIENCE_S


@pytest.fixture
async def stage(repo: Path):
    async with on_stage(repo) as stage:
        yield stage


async def state_is(stage: Stage, screen: CommitScreen, state: str) -> None:
    await stage.until(lambda: screen.changes and screen.changes.files[0].state == state, state)


@pytest.mark.system
async def test_space_stages_only_what_was_accepted_and_takes_it_back(
    stage: Stage, repo: Path
) -> None:
    await answered(stage)
    await accepted(stage, 1)
    path = repo / "pkg" / "things.py"
    path.write_text(path.read_text() + "\n# mine\n")
    await stage.until(lambda: any("mine" in row for row in stage.rows), "own change")
    before = path.read_bytes()
    screen = await at_the_files(stage)
    assert rows(screen)[0].split() == ["▸", "[", "]", "pkg/things.py", "+1", "-1", "not", "staged"]
    await stage.until(lambda: len(rows(screen)) > 3, "recent commits")
    assert [row.strip() for row in rows(screen)[2:4]] == ["Recent commits", "First"]
    assert "1 hunk still waits" in shown(screen, "change")
    assert "+     found = 0" in shown(screen, "change")
    assert "space stage" in hints(screen)
    await stage.press("space")
    await state_is(stage, screen, "staged")
    staged = git(repo, "diff", "--cached")
    assert "+    found = 0" in staged
    assert "mine" not in staged
    assert "found += 1" not in staged
    assert path.read_bytes() == before
    assert "space unstage" in hints(screen)
    await stage.press("space")
    await state_is(stage, screen, "unstaged")
    assert git(repo, "diff", "--cached") == ""
    assert path.read_bytes() == before


async def test_with_nothing_staged_commit_asks_and_stages_all(stage: Stage, repo: Path) -> None:
    await answered(stage)
    await accepted(stage, 2)
    screen = await at_the_files(stage)
    assert "C commit" in hints(screen)
    await stage.press("C", "1")
    await stage.until(lambda: stage.app.screen is stage.screen, "committed")
    assert git(repo, "log", "-1", "--format=%s").strip() == "Rename total to found"
    assert "+    found = 0" in git(repo, "show")


@pytest.mark.system
async def test_commit_takes_the_message_and_goes_back(stage: Stage, repo: Path) -> None:
    await answered(stage)
    await accepted(stage, 2)
    screen = await at_the_files(stage)
    assert screen.message.text == "Rename total to found"
    await stage.press("C")
    assert "Stage what was accepted in 1 file, and commit it?" in screen.notice.text
    await stage.press("2")
    assert not screen.notice.is_shown
    await stage.press("a")
    await state_is(stage, screen, "staged")
    await stage.press("i")
    assert isinstance(stage.app.focused, TextArea)
    assert "ctrl+s commit" in hints(screen)
    await stage.press("enter", "enter", "O", "K")
    await stage.press("ctrl+s")
    await stage.until(lambda: stage.app.screen is stage.screen, "back")
    assert git(repo, "log", "-1", "--format=%B").strip() == "Rename total to found\n\nOK"
    assert git(repo, "status", "--porcelain") == ""
    short = git(repo, "rev-parse", "--short=8", "HEAD").strip()
    assert stage.notice == f"Committed {short} on main: Rename total to found"
    assert stage.app.commit_message == ""
    screen = await at_the_files(stage)
    assert "committed" in rows(screen)[0]
    assert screen.message.text == ""
    assert "nothing left to commit" in screen.title_row.render().plain
    assert "staged" not in screen.title_row.render().plain
    await stage.press("space")
    assert "committed already" in screen.notice.text


@pytest.mark.system
async def test_what_was_staged_before_is_shown_previewed_and_kept(stage: Stage, repo: Path) -> None:
    (repo / "notes.md").write_text("# Other notes\n")
    git(repo, "add", "notes.md")
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    assert rows(screen)[1].strip() == "Staged by you, also committed"
    assert rows(screen)[2].split() == ["[x]", "notes.md"]
    await stage.press("j")
    await stage.until(lambda: "+ # Other notes" in shown(screen, "change"), "preview")
    assert previewed(screen) == committed(repo, "diff", "--cached", "notes.md")
    await stage.press("k", "space")
    await state_is(stage, screen, "staged")
    await stage.press("space")
    await state_is(stage, screen, "unstaged")
    assert git(repo, "diff", "--cached", "--name-only") == "notes.md\n"


async def test_what_another_program_staged_and_nobody_kept_is_marked_and_unstaged(
    stage: Stage, repo: Path
) -> None:
    session = stage.session
    await session.review.switch_on(since_commit=False)
    (repo / "notes.md").write_text("# Other notes\n")
    git(repo, "add", "notes.md")
    await session.review.changed({"notes.md"})
    screen = await at_the_files(stage)
    assert ("1 not kept", "error") in screen.title_row.facts
    assert rows(screen)[0].strip() == "Staged by another program, not kept yet"
    assert rows(screen)[1].split()[-4:] == ["[!]", "notes.md", "not", "kept"]
    assert "were not kept" in shown(screen, "change")
    await stage.press("space")
    await stage.until(lambda: screen.changes and not screen.changes.others, "unstaged")
    assert git(repo, "diff", "--cached", "--name-only") == ""
    assert (repo / "notes.md").read_text() == "# Other notes\n"


@pytest.mark.system
async def test_recent_commits_are_one_line_where_it_is_narrow_and_read_once(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "Second")
    calls: list[Path] = []

    def recent(root: Path, limit: int = 8) -> list[str]:
        calls.append(root)
        return recent_subjects(root, limit)

    monkeypatch.setattr("midstream.pairing.files.commit.recent_subjects", recent)
    async with on_stage(repo, size=(80, 24)) as stage:
        await answered(stage)
        await accepted(stage, 1)
        screen = await at_the_files(stage)
        await stage.until(lambda: len(rows(screen)) > 1, "recent commits")
        assert rows(screen)[1].split() == ["Recent", "Second", "·", "First"]
        await stage.press("space")
        await state_is(stage, screen, "staged")
        await stage.press("space")
        await state_is(stage, screen, "unstaged")
        assert len(calls) == 1
        # The list is short where it would take the room of the change.
        await stage.pilot.resize_terminal(80, 18)
        await stage.until(lambda: len(rows(screen)) == 1, "low")


@pytest.mark.system
async def test_a_hook_that_refuses_is_shown_whole(stage: Stage, repo: Path) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho first line\necho second \\033[31mline\nexit 1\n")
    hook.chmod(0o755)
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("a")
    await state_is(stage, screen, "staged")
    await stage.press("C")
    await stage.until(lambda: screen.notice.level == "error", "refusal")
    words = shown(screen, "change")
    assert "first line" in words
    assert "second" in words
    assert "\033" not in words
    assert stage.app.screen is screen
    assert screen.message.text == "Rename total to found"
    assert git(repo, "log", "--oneline").count("\n") == 1


@pytest.mark.system
async def test_without_an_author_the_way_out_is_said(
    stage: Stage, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    git(repo, "config", "user.name", "")
    git(repo, "config", "user.useConfigOnly", "true")
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("a")
    await state_is(stage, screen, "staged")
    await stage.press("C")
    await stage.until(lambda: screen.notice.level == "error", "refusal")
    assert "set user.name and user.email" in screen.notice.text


async def test_no_repository_says_so_and_what_to_do(project: Path) -> None:
    async with on_stage(project) as stage:
        await answered(stage)
        await accepted(stage, 1)
        screen = await at_the_files(stage)
        assert "is not in a git repository; run `git init` there" in screen.notice.text
        assert hints(screen) == ["i message", "esc back", "? keys"]
        await stage.press("space")
        assert "is not in a git repository" in screen.notice.text
        await stage.press("C")
        assert "is not in a git repository" in screen.notice.text
        assert "+     found = 0" in shown(screen, "change")


async def test_with_nothing_accepted_it_says_so_and_keys_go_to_the_page(stage: Stage) -> None:
    await answered(stage)
    screen = await at_the_files(stage)
    await stage.until(lambda: shown(screen, "change"), "why it is empty")
    words = " ".join(shown(screen, "change").split())
    assert words.startswith("Nothing was accepted in this session")
    assert "beside the code, a accepts the hunk" in words
    assert rows(screen) == []
    assert (screen.detail.region.x, screen.detail.region.y) == (0, screen.list.region.y + 1)
    await stage.until(lambda: screen.list.has_focus, "no message to write")
    await stage.press("q")
    assert stage.app.screen is stage.screen


async def test_the_key_of_the_page_is_named_once_something_is_accepted(stage: Stage) -> None:
    await answered(stage)
    first, _ = stage.session.hunks.undecided("pkg/things.py")
    await stage.session.decisions.reject(first.id)
    await stage.until(lambda: "u undo" in stage.keys, "rejected")
    assert "C commit" not in stage.keys
    await accepted(stage, 1)
    await stage.until(lambda: "C commit" in stage.keys, "accepted")


async def test_a_change_that_does_not_fit_the_index_is_a_conflict(stage: Stage, repo: Path) -> None:
    path = repo / "pkg" / "things.py"
    await answered(stage)
    text = path.read_text()
    path.write_text(text.replace("total = 0", "sum = 0"))
    git(repo, "add", "pkg/things.py")
    path.write_text(text)
    await stage.pilot.pause(0.4)
    waiting = stage.session.hunks.undecided("pkg/things.py")
    assert waiting
    for hunk in waiting:
        await stage.session.decisions.accept(hunk.id)
    screen = await at_the_files(stage)
    assert "conflict" in rows(screen)[0]
    assert "cannot be staged by itself" in shown(screen, "change")
    await stage.press("space")
    assert screen.notice.level == "error"
    assert "sum = 0" in git(repo, "diff", "--cached")


async def opened_with_own_line(stage: Stage, repo: Path) -> CommitScreen:
    """The commit page, with both hunks accepted and a changed line of the user's own."""
    path = repo / "pkg" / "things.py"
    await answered(stage)
    await accepted(stage, 2)
    path.write_text(path.read_text().replace("number * 2", "number + number"))
    await stage.until(lambda: any("number + number" in row for row in stage.rows), "own line")
    return await at_the_files(stage)


@pytest.mark.system
async def test_lines_of_the_person_stay_out_and_o_takes_them_along(
    stage: Stage, repo: Path
) -> None:
    screen = await opened_with_own_line(stage, repo)
    assert "2 other changed lines stay out; o takes the whole file" in shown(screen, "change")
    assert "o whole file" in hints(screen)
    await stage.press("space")
    await state_is(stage, screen, "staged")
    assert "number" not in git(repo, "diff", "--cached", "-U0").replace("def double(number)", "")
    assert "stay out" in shown(screen, "change")
    await stage.press("o")
    await stage.until(lambda: "stay out" not in shown(screen, "change"), "taken along")
    assert "+    return number + number" in git(repo, "diff", "--cached")
    assert "o other lines out" in hints(screen)


@pytest.mark.system
async def test_o_leaves_the_own_lines_out_again(stage: Stage, repo: Path) -> None:
    screen = await opened_with_own_line(stage, repo)
    await stage.press("space")
    await state_is(stage, screen, "staged")
    accepted_only = git(repo, "diff", "--cached")
    await stage.press("o")
    await stage.until(lambda: "o leaves the other lines out" in shown(screen, "change"), "whole")
    whole = git(repo, "diff", "--cached")
    assert "number + number" in whole
    # The accepted change goes out and comes back; the own lines are there all the time.
    await stage.press("space")
    await state_is(stage, screen, "partly")
    assert "o other lines out" not in hints(screen)
    await stage.press("space")
    await state_is(stage, screen, "staged")
    assert git(repo, "diff", "--cached") == whole
    await stage.press("o")
    await stage.until(lambda: "o takes the whole file" in shown(screen, "change"), "own lines out")
    assert git(repo, "diff", "--cached") == accepted_only
    assert "number + number" in (repo / "pkg" / "things.py").read_text()
    await stage.press("o")
    await stage.until(lambda: "o leaves the other lines out" in shown(screen, "change"), "whole")
    git(repo, "reset", "-q")
    await stage.press("o")
    await stage.until(lambda: "staged again since" in screen.notice.text, "the index is another")
    assert git(repo, "diff", "--cached") == ""


@pytest.mark.system
async def test_what_was_committed_is_not_taken_out_with_o(stage: Stage, repo: Path) -> None:
    screen = await opened_with_own_line(stage, repo)
    await stage.press("o")
    await stage.until(lambda: "o leaves the other lines out" in shown(screen, "change"), "whole")
    await stage.press("C")
    await stage.until(lambda: stage.app.screen is stage.screen, "back")
    screen = await at_the_files(stage)
    await state_is(stage, screen, "committed")
    assert not any(hint.startswith("o ") for hint in hints(screen))


async def test_own_lines_beside_the_accepted_ones_are_said_and_taken_with_o(
    stage: Stage, repo: Path
) -> None:
    path = repo / "pkg" / "things.py"
    await answered(stage)
    await accepted(stage, 1)
    path.write_text(path.read_text().replace('"""Count the', '"""Tell the'))
    await stage.until(lambda: any('"""Tell the' in row for row in stage.rows), "own line")
    screen = await at_the_files(stage)
    await state_is(stage, screen, "conflict")
    assert "lines that you changed" in shown(screen, "change").replace("\n", " ")
    await stage.press("o")
    await state_is(stage, screen, "staged")
    assert git(repo, "diff") == ""
    await stage.press("o")
    await state_is(stage, screen, "conflict")
    assert git(repo, "diff", "--cached") == ""


@pytest.mark.system
async def test_a_file_that_git_does_not_know_is_staged_as_a_whole_only(
    stage: Stage, repo: Path
) -> None:
    git(repo, "rm", "-q", "--cached", "pkg/things.py")
    git(repo, "commit", "-q", "-m", "without")
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await state_is(stage, screen, "conflict")
    assert "stage the whole file" in screen.changes.files[0].trouble
    await stage.press("o")
    await state_is(stage, screen, "staged")
    whole = (repo / "pkg" / "things.py").read_text()
    assert f"new file, {len(whole.splitlines())} lines" in shown(screen, "change")
    assert git(repo, "show", ":pkg/things.py") == whole
    await stage.press("o")
    await state_is(stage, screen, "conflict")
    assert git(repo, "status", "--porcelain", "pkg/things.py").startswith("??")


@pytest.mark.system
async def test_the_message_tells_what_was_asked_first_where_a_comment_went_over_it(
    stage: Stage,
) -> None:
    await answered(stage)
    await stage.instruct("seen, not found")
    stage.model.give(RENAMED.replace("found", "seen"))
    stage.model.give(None)
    await stage.until(lambda: len(stage.session.turns) == 2, "turn")
    await stage.until(lambda: not stage.session.turns[-1].running, "end")
    await stage.until(lambda: stage.session.status.state == "ready", "ready")
    await accepted(stage, 9)
    screen = await at_the_files(stage)
    assert screen.message.text == "Rename total to found; seen, not found"


async def test_long_lines_of_a_change_are_cut_with_a_mark(repo: Path) -> None:
    path = repo / "pkg" / "things.py"
    path.write_text(path.read_text().replace("    for item", f"    # {'long ' * 60}\n    for item"))
    async with on_stage(repo, size=(80, 24)) as stage:
        await answered(stage)
        await accepted(stage, 1)
        screen = await at_the_files(stage)
        lines = shown(screen, "change").splitlines()
        (cut,) = [line for line in lines if "long long" in line]
        assert cut.endswith("…")
        assert len(cut) <= screen.detail.columns


@pytest.mark.system
async def test_escape_only_closes_and_the_message_stays(stage: Stage) -> None:
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("tab", "right")
    await stage.press("!", "q")
    assert screen.message.text == "Rename total to found!q"
    assert screen.message.title.length == 23
    await stage.press("escape")
    assert stage.app.screen is screen
    assert screen.list.has_focus
    await stage.press("escape")
    assert stage.app.screen is stage.screen
    screen = await at_the_files(stage)
    assert screen.message.text == "Rename total to found!q"
    await stage.press("q")
    assert stage.app.screen is stage.screen


@pytest.mark.system
async def test_an_offered_message_is_offered_anew_when_the_page_opens_again(
    stage: Stage, repo: Path
) -> None:
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    assert screen.message.text == "Rename total to found"
    await stage.press("escape")
    assert stage.app.screen is stage.screen
    screen = await page(stage, "C", CommitScreen)
    await stage.until(lambda: screen.recent, "everything was read")
    assert screen.message.title.note
    await stage.type("Fix")
    await stage.until(lambda: screen.message.text == "Fix", "text")
    await stage.press("escape", "escape")
    assert stage.app.commit_message == "Fix"
    stage.app.commit_message = ""
    screen = await at_the_files(stage)
    await stage.press("A")
    await stage.until(lambda: screen.message.text == "First", "amending")
    await stage.press("escape")
    screen = await at_the_files(stage)
    await stage.until(lambda: screen.message.text == "Rename total to found", "no longer amending")


async def test_the_counter_warns_at_50_and_72(stage: Stage) -> None:
    screen = await at_the_files(stage)
    field, title = screen.message.field, screen.message.title
    for length, role in ((50, "muted"), (51, "warning"), (72, "warning"), (73, "error")):
        field.text = "x" * length
        await stage.pilot.pause()
        assert (title.length, title.role) == (length, role)
    field.text = "Subject\n\n" + "y" * 60
    field.move_cursor(field.document.end)
    await stage.pilot.pause()
    assert (title.length, title.limit, title.role) == (60, 72, "muted")


async def test_S_in_the_code_stages_the_file(stage: Stage, repo: Path) -> None:  # noqa: N802
    await answered(stage)
    stage.screen.set_focus(stage.pane)
    await stage.press("S")
    await stage.until(lambda: stage.notice, "notice")
    assert stage.notice == "Nothing was accepted in this file, so there is nothing to stage."
    await accepted(stage, 1)
    await stage.press("S")
    await stage.until(lambda: stage.notice.startswith("Staged"), "staged")
    assert stage.notice == "Staged the accepted changes of pkg/things.py; C commits."
    assert "found = 0" in git(repo, "diff", "--cached")


async def test_help_names_every_key_and_the_palette_has_the_page(stage: Stage) -> None:
    screen = await at_the_files(stage)
    await stage.press("question_mark")
    await stage.pilot.pause(0.1)
    assert type(stage.app.screen).__name__ == "HelpScreen"
    await stage.press("escape")
    assert stage.app.screen is screen
    await stage.press("escape", "colon")
    await stage.type("commit accepted")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, CommitScreen), "page")


async def test_a_trailer_is_added_when_the_settings_want_it(repo: Path) -> None:
    async with on_stage(repo, settings=Settings(journal=False, attention=True)) as stage:
        await answered(stage)
        await accepted(stage, 2)
        # How many were read depends on how long they were on screen.
        assert re.match(r"Accepted-Unread: [012] of 2 hunks, ", stage.session.commit.trailer)
        await stage.session.commit.stage("pkg/things.py")
        await stage.session.commit.commit("Subject", trailer=True)
        assert git(repo, "log", "-1", "--format=%B").strip().splitlines() == [
            "Subject",
            "",
            stage.session.commit.trailer,
        ]


@pytest.mark.system
async def test_a_rewritten_place_is_staged_whole(stage: Stage, repo: Path) -> None:
    """The second answer changes lines that the first one brought."""
    await answered(stage)
    await accepted(stage, 2)
    await stage.instruct("rename found to seen")
    stage.model.give(stage.model.region.replace("found", "seen") + "\n")
    stage.model.give(None)
    await stage.until(lambda: len(stage.session.turns) == 2, "turn")
    await stage.until(lambda: not stage.session.turns[-1].running, "end")
    await stage.until(lambda: stage.session.hunks.undecided(), "hunks")
    await asyncio.sleep(0.05)
    await accepted(stage, 9)
    screen = await at_the_files(stage)
    await stage.press("a")
    await state_is(stage, screen, "staged")
    git(repo, "commit", "-q", "-m", "x")
    assert git(repo, "show", "HEAD:pkg/things.py") == (repo / "pkg" / "things.py").read_text()


def previewed(screen: CommitScreen) -> list[str]:
    """The changed lines of the preview, as git writes them."""
    signs = [re.match(r" *\d+ +([+-]) (.*)", row) for row in shown(screen, "change").splitlines()]
    return [f"{sign[1]}{sign[2].rstrip()}" for sign in signs if sign]


def committed(repo: Path, *arguments: str) -> list[str]:
    """The changed lines of a diff that git makes."""
    lines = git(repo, *arguments).splitlines()
    return [line.rstrip() for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


@pytest.mark.system
async def test_the_preview_is_what_is_committed_with_lines_of_the_user_as_well(
    stage: Stage, repo: Path
) -> None:
    screen = await opened_with_own_line(stage, repo)
    before = previewed(screen)
    assert len(before) >= 4
    assert not any("number" in line for line in before)
    await stage.press("space")
    await state_is(stage, screen, "staged")
    assert previewed(screen) == before == committed(repo, "diff", "--cached")
    await stage.press("o")
    await stage.until(lambda: "stay out" not in shown(screen, "change"), "taken along")
    assert "+    return number + number" in previewed(screen)
    assert previewed(screen) == committed(repo, "diff", "--cached")
    assert f"+{len(before) // 2 + 1}" in rows(screen)[0]
    wanted = previewed(screen)
    await stage.press("C")
    await stage.until(lambda: stage.app.screen is stage.screen, "back")
    assert committed(repo, "show", "--format=") == wanted


@pytest.mark.system
async def test_the_colours_are_those_of_the_code_pane_and_the_theme(stage: Stage) -> None:
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    content = screen.query_one("#change", Static).content
    assert isinstance(content, Text)
    row = next(n for n, line in enumerate(content.plain.splitlines()) if "+     found" in line)
    line = content.split("\n")[row]
    styles = {
        line.plain[span.start : span.end]: span.style
        for span in line.spans
        if isinstance(span.style, Style)
    }
    # The theme of the tests has the terminal's own colours, where a changed word is underlined.
    assert styles["found"].underline
    assert not styles["0"].underline
    assert styles["0"].color == screen.palette.token_styles["number"].color
    assert styles["0"].color != styles["found"].color
    stage.app.use_theme("paper")
    title = screen.message.title.render()
    assert title.spans[-1].style == stage.app.palette.style("muted")
    assert "prefilled" in title.plain


async def test_enter_takes_no_message_away_that_is_selected(stage: Stage, repo: Path) -> None:
    await answered(stage)
    await accepted(stage, 2)
    screen = await page(stage, "C", CommitScreen)
    await stage.until(lambda: screen.message.field.text != "", "the message")
    begun = screen.message.field.text
    assert not screen.message.field.selection.is_empty
    await stage.press("enter")
    assert screen.message.field.text == begun
    await stage.press("enter")
    assert screen.message.field.text == f"{begun}\n"


async def test_one_key_commits_from_the_message_and_the_footer_shows_it(
    stage: Stage, repo: Path
) -> None:
    await answered(stage)
    await accepted(stage, 2)
    screen = await at_the_files(stage)
    wanted = previewed(screen)
    await stage.press("i")
    assert hints(screen)[0] == "ctrl+s stage all, commit"
    await stage.press("enter")
    assert "line 2  0/72" in screen.message.title.render().plain
    await stage.press("ctrl+s")
    await stage.until(lambda: stage.app.screen is stage.screen, "back")
    assert git(repo, "log", "-1", "--format=%s").strip() == "Rename total to found"
    assert committed(repo, "show", "--format=") == wanted
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.system
async def test_amend_replaces_the_last_commit_and_previews_all_of_it(
    stage: Stage, repo: Path
) -> None:
    (repo / "notes.md").write_text("# Other notes\n")
    git(repo, "commit", "-q", "-a", "-m", "Second\n\nwith a body")
    old = git(repo, "rev-parse", "--short=8", "HEAD").strip()
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("A")
    await stage.until(lambda: screen.changes and screen.changes.amends, "amending")
    await stage.until(lambda: any("notes.md" in row for row in rows(screen)), "listed")
    assert screen.message.text == "Second\n\nwith a body"
    assert f"amends {old} Second" in screen.title_row.render().plain
    assert "A do not amend" in hints(screen)
    await stage.press("A")
    await stage.until(lambda: not screen.amend, "not amending")
    assert screen.message.text == "Rename total to found"
    await stage.press("A")
    await stage.until(lambda: screen.message.text.startswith("Second"), "amending")
    await stage.press("a")
    await state_is(stage, screen, "staged")
    first = previewed(screen)
    await stage.press("j")
    await stage.until(lambda: "+ # Other notes" in shown(screen, "change"), "preview")
    second = previewed(screen)
    await stage.press("C")
    await stage.until(lambda: stage.app.screen is stage.screen, "back")
    assert git(repo, "log", "--format=%s").split() == ["Second", "First"]
    assert sorted(committed(repo, "show", "--format=")) == sorted([*first, *second])
    assert stage.notice.startswith(f"Amended {old} to ")


async def test_a_published_commit_is_amended_only_with_a_warning(stage: Stage, repo: Path) -> None:
    git(repo, "update-ref", "refs/remotes/origin/main", "HEAD")
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("A")
    await stage.until(lambda: "origin/main already has" in screen.notice.text, "warning")
    assert screen.notice.level == "warning"


async def test_the_message_is_continued_in_the_users_editor(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    closed = tmp_path / "closed"
    editor.write_text(
        f'#!/bin/sh\nuntil [ -e "{closed}" ]; do sleep 0.1; done\n'
        'printf "\\nwhy: $(basename "$1")\\n" >> "$1"\n'
    )
    editor.chmod(0o755)
    monkeypatch.setattr(MidstreamApp, "suspend", lambda self: nullcontext())
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    assert "e editor" in hints(screen)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    await stage.press("e")
    assert "There is no editor to open" in screen.notice.text
    monkeypatch.setenv("EDITOR", str(editor))
    screen.tour.show(TourWords("9 of 10", (("Enter commits it.", False),)))
    await stage.press("i", "ctrl+g", "ctrl+g", "ctrl+s", "enter")
    closed.touch()
    wanted = "Rename total to found\n\nwhy: COMMIT_EDITMSG"
    await stage.until(lambda: screen.message.text != "Rename total to found", "edited")
    await stage.until(lambda: all(worker.is_finished for worker in stage.app.workers), "once")
    assert screen.message.text == wanted
    assert stage.app.screen is screen, "nothing was committed meanwhile"
    assert stage.app.commit_message == wanted
    monkeypatch.setenv("EDITOR", "false")
    await stage.press("ctrl+g")
    await stage.until(lambda: "false failed" in screen.notice.text, "failure")
    assert screen.message.text == wanted


def waiting_hook(repo: Path) -> Path:
    """Give a repository a hook that makes a file and lasts as long as that is there."""
    begun = repo.parent / "begun"
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch '{begun}'\nwhile [ -e '{begun}' ]; do sleep 0.01; done\n")
    hook.chmod(0o755)
    return begun


async def test_while_git_commits_no_question_is_open_and_no_key_commits_again(
    stage: Stage, repo: Path
) -> None:
    begun = waiting_hook(repo)
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("C")
    assert screen.notices.asking
    await stage.press("ctrl+s")
    await stage.until(begun.exists, "the hook")
    assert not screen.notices.asking
    assert hints(screen) == ["i message", "esc back", "? keys"]
    assert screen.notice.text == "Committing; git and its hooks run."
    begun.unlink()
    await stage.until(lambda: stage.app.screen is stage.screen, "committed")


async def test_quitting_twice_stops_git_and_still_asks(stage: Stage, repo: Path) -> None:
    begun = waiting_hook(repo)
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("space")
    await state_is(stage, screen, "staged")
    await stage.press("C")
    await stage.until(begun.exists, "the hook")
    await stage.press("ctrl+q")
    await stage.until(lambda: "again stops them" in screen.notice.text, "waiting for git")
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in screen.notice.text, "asked")
    assert stage.app.is_running
    assert not stage.session.commit.made


async def test_text_typed_right_after_the_key_of_the_page_is_the_message(
    stage: Stage, repo: Path
) -> None:
    await answered(stage)
    await accepted(stage, 1)
    states = [hunk.state for hunk in stage.session.hunks]
    stage.app.commit_message = "Note: "
    stage.screen.set_focus(stage.pane)
    await stage.type("CFix a rare order; 1 Cause")
    await stage.until(lambda: isinstance(stage.app.screen, CommitScreen), "page")
    screen = stage.app.screen
    assert isinstance(screen, CommitScreen)
    await stage.until(lambda: screen.message.text == "Note: Fix a rare order; 1 Cause", "text")
    assert [hunk.state for hunk in stage.session.hunks] == states
    await stage.until(lambda: screen.changes is not None, "index")
    assert not screen.amend
    assert git(repo, "diff", "--cached") == ""
    assert git(repo, "log", "--format=%s") == "First\n"


@pytest.mark.parametrize("sentence", ["add Commit ie ok", "A quick jog", "e", "Commit"])
async def test_typing_a_message_stages_and_commits_nothing(
    stage: Stage, repo: Path, sentence: str
) -> None:
    await answered(stage)
    await accepted(stage, 1)
    screen = await page(stage, "C", CommitScreen)
    await stage.until(lambda: screen.recent, "everything was read")
    assert screen.message.text == "Rename total to found"
    assert "esc to the files" in hints(screen)
    assert screen.message.title.note
    await stage.type(sentence)
    await stage.until(lambda: screen.message.text == sentence, "text")
    assert not screen.message.title.note, "nothing of it is prefilled any more"
    assert git(repo, "diff", "--cached") == ""
    await stage.press("escape")
    assert screen.list.has_focus
    assert stage.app.screen is screen


async def test_pasted_text_is_the_message(stage: Stage) -> None:
    await answered(stage)
    await accepted(stage, 1)
    stage.app.commit_message = "Note: "
    screen = await at_the_files(stage)
    stage.app.post_message(Paste("a C o"))
    await stage.until(lambda: screen.message.text == "Note: a C o", "text")


async def test_an_offered_message_does_not_replace_typed_text(stage: Stage) -> None:
    await answered(stage)
    await accepted(stage, 1)
    stage.screen.set_focus(stage.pane)
    await stage.type("CaF")
    await stage.until(lambda: isinstance(stage.app.screen, CommitScreen), "page")
    screen = stage.app.screen
    assert isinstance(screen, CommitScreen)
    await stage.until(lambda: screen.recent, "everything was read")
    assert screen.message.text == "aF"


async def test_a_long_comparison_holds_nothing_up(
    stage: Stage, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    between = FileDiff.between

    def slowly(before: SourceText, after: SourceText) -> FileDiff:
        goes_on.wait(PATIENCE_S)
        return between(before, after)

    monkeypatch.setattr(commit_module, "MAX_QUICK", 0)
    monkeypatch.setattr(FileDiff, "between", slowly)
    await answered(stage)
    await accepted(stage, 2)
    try:
        screen = await at_the_files(stage)
        assert "comparing" in rows(screen)[0]
        assert "comparing its lines" in shown(screen, "change")
        await stage.press("a")
        await state_is(stage, screen, "staged")
    finally:
        goes_on.set()
    await stage.until(lambda: "+4 -4" in rows(screen)[0], "counts")
    assert "+     found = 0" in shown(screen, "change")
    await stage.press("C")
    await stage.until(lambda: stage.app.screen is stage.screen, "committed")
    assert "+    found = 0" in git(repo, "show")


async def test_whole_files_are_compared_away_from_the_event_loop_and_only_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, threads = 0, list[threading.Thread]()
    between, equal = FileDiff.between, Comparison.__eq__

    def counting(before: SourceText, after: SourceText) -> FileDiff:
        nonlocal made
        made += 1
        return between(before, after)

    def noting(self: Comparison, other: object) -> bool:
        threads.append(threading.current_thread())
        return equal(self, other)

    monkeypatch.setattr(commit_module, "MAX_QUICK", 0)
    monkeypatch.setattr(FileDiff, "between", counting)
    monkeypatch.setattr(Comparison, "__eq__", noting)
    await answered(stage)
    await accepted(stage, 2)
    screen = await at_the_files(stage)
    await stage.until(lambda: "+4 -4" in rows(screen)[0], "counts")
    before = made
    await stage.press("a")
    await state_is(stage, screen, "staged")
    assert "+4 -4" in rows(screen)[0], "the diff stays"
    await stage.press("j", "k")
    assert made == before
    assert len(threads) == 1
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("keys", ["aC", "C1", "jkiFix"])
async def test_keys_typed_before_the_index_is_read_wait_for_it(
    stage: Stage, repo: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    goes_on = threading.Event()

    def slowly(*_: object, **facts: object) -> object:
        goes_on.wait(PATIENCE_S)
        return compare(*_, **facts)

    compare = staging.compare_changes
    monkeypatch.setattr(staging, "compare_changes", slowly)
    await answered(stage)
    await accepted(stage, 1)
    states = [hunk.state for hunk in stage.session.hunks]
    stage.app.commit_message = "Note"
    stage.screen.set_focus(stage.pane)
    try:
        await stage.type(f"C\x1b{keys}")  # in one burst, which the page is mounted in the midst of
        await stage.until(lambda: isinstance(stage.app.screen, CommitScreen), "page")
        screen = stage.app.screen
        assert isinstance(screen, CommitScreen)
        assert screen.changes is None
        assert screen.message.text == "Note"
    finally:
        goes_on.set()
    if keys == "C1":
        await stage.until(lambda: stage.app.screen is stage.screen, "committed")
        assert git(repo, "log", "-1", "--format=%s") == "Note\n"
    elif keys == "aC":
        await state_is(stage, screen, "staged")
    else:
        await stage.until(lambda: screen.message.text == "NoteFix", "text")
    assert [hunk.state for hunk in stage.session.hunks] == states


@pytest.mark.system
async def test_amending_asks_whether_what_was_accepted_is_to_be_in_it(
    stage: Stage, repo: Path
) -> None:
    await answered(stage)
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await stage.press("A")
    await stage.until(lambda: screen.changes and screen.changes.amends, "amending")
    await stage.press("ctrl+s")
    await stage.until(lambda: screen.notices.asking, "question")
    assert screen.notices.choices == (
        "stage what was accepted, amend",
        "amend without it",
        "choose files",
    )
    await stage.press("1")
    await stage.until(lambda: stage.app.screen is stage.screen, "amended")
    assert git(repo, "log", "--format=%s") == "First\n"
    assert "    found = 0\n" in git(repo, "show", "HEAD:pkg/things.py")


async def test_what_was_kept_is_staged_in_place_of_what_another_program_staged(
    stage: Stage, repo: Path
) -> None:
    session, path = stage.session, repo / "pkg" / "things.py"
    await session.review.switch_on(since_commit=False)
    git(repo, "mv", "pkg/things.py", "pkg/other.py")
    moved = repo / "pkg" / "other.py"
    moved.write_text(moved.read_text().replace("total", "found"))
    await session.review.changed({"pkg/things.py", "pkg/other.py"})
    for hunk in session.hunks.undecided():
        await session.decisions.accept(hunk.id)
    stage.app.commit_message = "Move"
    screen = await at_the_files(stage)
    assert "not kept" in " ".join(rows(screen))
    await stage.press("C")
    await stage.until(lambda: screen.notices.asking, "question")
    assert screen.notices.choices == ("stage what was kept, commit", "choose files")
    await stage.press("1")
    await stage.until(lambda: stage.app.screen is stage.screen, "committed")
    assert not path.exists()
    assert git(repo, "show", "HEAD:pkg/other.py") == moved.read_text()
    assert git(repo, "status", "--porcelain") == ""


async def test_the_index_keeps_what_it_had_where_what_was_kept_cannot_be_staged(
    stage: Stage, repo: Path
) -> None:
    session, path = stage.session, repo / "pkg" / "things.py"
    own = path.read_text().replace("total = 0", "total = 5")
    path.write_text(own)  # not committed: without the index, the kept change has no place
    await session.review.switch_on(since_commit=False)
    kept = own.replace("total = 5", "total = 6")
    path.write_text(f"{kept}\nextra = 1\n")
    git(repo, "add", "pkg/things.py")
    staged = git(repo, "diff", "--cached")
    path.write_text(kept)
    await session.review.changed({"pkg/things.py"})
    for hunk in session.hunks.undecided():
        await session.decisions.accept(hunk.id)
    stage.app.commit_message = "More"
    screen = await at_the_files(stage)
    await stage.press("C")
    await stage.until(lambda: screen.notices.asking, "question")
    await stage.press("1")
    await stage.until(lambda: "cannot be staged" in screen.notice.text, "error")
    assert git(repo, "diff", "--cached") == staged
    assert git(repo, "log", "--format=%s") == "First\n"


@pytest.mark.parametrize("answer", ["1", "2"])
async def test_what_was_accepted_since_a_file_was_staged_is_asked_about(
    stage: Stage, repo: Path, answer: str
) -> None:
    """This comes after a refusing hook, when more is kept in the file before the next try."""
    await answered(stage)
    await accepted(stage, 1)
    await stage.session.commit.stage("pkg/things.py")
    await accepted(stage, 1)
    screen = await at_the_files(stage)
    await state_is(stage, screen, "partly")
    await stage.press("ctrl+s")
    await stage.until(lambda: screen.notices.asking, "question")
    await stage.press(answer)
    await stage.until(lambda: stage.app.screen is stage.screen, "committed")
    committed = git(repo, "show", "HEAD:pkg/things.py")
    assert "    found = 0\n" in committed
    assert ("found += 1" in committed) is (answer == "1")
