"""What the tests of the pages share: a repository, an answered instruction, an open page."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TypeVar

from rich.text import Text
from textual.widgets import Static

from midstream.tui.pages.commit import CommitScreen
from midstream.tui.pages.page import PageScreen
from midstream.tui.widgets.key_bar import KeyBar
from tests.helpers.pairing import commit_files
from tests.helpers.stage import CODE, Stage

P = TypeVar("P", bound=PageScreen)

RENAMED = CODE[CODE.index("def count") : CODE.index("\ndef double") - 1].replace("total", "found")


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout


def make_repo(root: Path) -> None:
    """Make a folder with files a repository of A Person, whose first commit has them."""
    found = sorted(path for path in root.rglob("*") if path.is_file())
    commit_files(root, {str(path.relative_to(root)): path.read_text() for path in found}, "First")
    with (root / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = A Person\n\temail = person@example.org\n")


async def answered(stage: Stage, text: str = "rename total to found") -> None:
    """Open the file and have the model answer an instruction: two hunks wait."""
    await stage.open("pkg/things.py")
    stage.pane.go_to(7)
    await stage.instruct(text)
    stage.model.give(RENAMED)
    stage.model.give(None)
    await stage.until(lambda: not stage.session.turns[-1].running, "end")
    await stage.until(lambda: stage.session.status.state == "ready", "ready")


async def accepted(stage: Stage, count: int = 1) -> None:
    """Accept hunks, from the first one on."""
    for hunk in stage.session.hunks.undecided("pkg/things.py")[:count]:
        assert await stage.session.decisions.accept(hunk.id)
    await stage.pilot.pause()


async def page(stage: Stage, key: str, kind: type[P]) -> P:
    """Open a page with its key from the code."""
    stage.screen.set_focus(stage.pane)
    await stage.press(key)
    await stage.until(lambda: isinstance(stage.app.screen, kind), kind.__name__)
    await stage.pilot.pause(0.05)
    screen = stage.app.screen
    assert isinstance(screen, kind)
    return screen


async def at_the_files(stage: Stage) -> CommitScreen:
    """Open the commit page, and go from its message to the files once these are known."""
    screen = await page(stage, "C", CommitScreen)
    await stage.until(lambda: screen.changes is not None, "index")
    await stage.pilot.pause(0.05)
    if not screen.list.has_focus:
        await stage.press("escape")
    return screen


def shown(screen: PageScreen, widget_id: str) -> str:
    """The text of a widget."""
    widget = screen.query_one(f"#{widget_id}", Static)
    content = widget.content
    assert isinstance(content, Text)
    return content.plain


def rows(screen: PageScreen) -> list[str]:
    """The rows of the list, as painted."""
    return [screen.list._strip(y).text.rstrip() for y in range(len(screen.list.rows))]


def hints(screen: PageScreen) -> list[str]:
    return [f"{hint.key} {hint.words}" for hint in screen.query_one(KeyBar).hints]
