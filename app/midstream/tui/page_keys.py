# ruff: noqa: E501 (the table is read by columns)
"""The actions of the pages (commit, sessions, settings, models) as data: id, keys, words.

Like ``keymap`` for the review screen: bindings, key bar and help of a page are made from this
table, and a person's own keys replace key strings by id.  All of them are priority bindings: in a
burst of keys, none overtakes the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from textual.binding import Binding


class Page(StrEnum):
    """Where an action's keys hold."""

    ANY = "page"
    COMMIT = "commit"
    SESSIONS = "sessions"
    SETTINGS = "settings"
    MODELS = "models"


@dataclass(frozen=True, slots=True)
class PageAction:
    """Something a person can do on a page.

    Attributes:
        id: Name for the user's key settings; never changes.
        page: Where the keys hold.
        keys: Default keys, comma separated, in Textual's names.
        call: Textual action of the page that does it.
        short: One or two words for the key bar; ``""`` keeps it out of there.
        help: A sentence for the help of the page.
        typing: Whether the keys also hold in a text field.
    """

    id: str
    page: Page
    keys: str
    call: str
    short: str
    help: str
    typing: bool = False


_A, _C, _S, _E, _M = Page.ANY, Page.COMMIT, Page.SESSIONS, Page.SETTINGS, Page.MODELS

PAGE_ACTIONS: Final = (
    PageAction("commit.stage", _C, "space", "stage", "stage", "Stage what was accepted in this file, or take it out of the index again"),
    PageAction("commit.stage_all", _C, "a", "stage_all", "stage all", "Stage what was accepted in every file"),
    PageAction("commit.whole", _C, "o", "whole", "whole file", "Stage the whole file, lines of your own included"),
    PageAction("commit.message", _C, "i,enter,tab", "message", "message", "Write the message"),
    PageAction("commit.commit", _C, "C", "commit", "commit", "Commit what is staged; your hooks run"),
    PageAction("commit.commit.anywhere", _C, "ctrl+s", "commit", "commit", "Commit, also while writing the message", True),
    PageAction("commit.files", _C, "shift+tab", "files", "files", "From the message back to the files", True),
    PageAction("sessions.resume", _S, "enter", "resume", "resume", "Take this session up again, in place of the current one"),
    PageAction("sessions.delete", _S, "d,delete", "delete", "delete", "Delete the journal of this session; files stay as they are"),
    PageAction("settings.change", _E, "enter,space", "change", "change", "Change the value: switch it, choose, or type"),
    PageAction("settings.reset", _E, "backspace,delete", "reset", "reset", "Take the value out of your file; what it was before then holds"),
    PageAction("settings.find", _E, "slash", "find", "find", "Show only the settings with these letters"),
    PageAction("models.use", _M, "enter", "use", "use", "Use this model from the next instruction on"),
    PageAction("models.keep", _M, "s", "keep", "use, keep", "Use it, and write it to your settings as well"),
    PageAction("models.effort", _M, "e", "effort", "effort", "The next level of effort that this model knows"),
    PageAction("models.ask", _M, "f", "ask", "ask servers", "Ask the endpoints, and engines on this machine, for their models"),
    PageAction("page.row_down", _A, "j,down,ctrl+n", "move(1)", "", "Next row"),
    PageAction("page.row_up", _A, "k,up,ctrl+p", "move(-1)", "", "Row above"),
    PageAction("page.rows_down", _A, "pagedown,ctrl+d", "move(10)", "", "Ten rows down"),
    PageAction("page.rows_up", _A, "pageup,ctrl+u", "move(-10)", "", "Ten rows up"),
    PageAction("page.top", _A, "g,home", "move(-1000000)", "", "First row"),
    PageAction("page.bottom", _A, "G,end", "move(1000000)", "", "Last row"),
    PageAction("page.scroll_down", _A, "J,shift+down", "scroll(3)", "", "Further down in what is told beside or below the list"),
    PageAction("page.scroll_up", _A, "K,shift+up", "scroll(-3)", "", "Further up there"),
    PageAction("page.help", _A, "question_mark,f1", "help", "keys", "The keys of this page"),
    PageAction("page.close", _A, "escape", "close", "back", "Leave the field, or the page; never decides or sends anything", True),
    PageAction("page.leave", _A, "q", "close", "", "Leave the page"),
    PageAction("page.repaint", _A, "ctrl+l", "repaint", "", "Paint the whole screen again", True),
)  # fmt: skip
PAGE_BY_ID: Final[Mapping[str, PageAction]] = {action.id: action for action in PAGE_ACTIONS}


def actions_of(page: Page) -> Iterator[PageAction]:
    """The actions whose keys hold on a page, its own first."""
    yield from (action for action in PAGE_ACTIONS if action.page is page)
    yield from (action for action in PAGE_ACTIONS if action.page is Page.ANY)


def page_bindings(page: Page) -> list[Binding]:
    """Textual bindings, with ids, for a page, and the number keys that answer a question."""
    return [
        *(
            Binding(a.keys, f"page('{a.id}')", a.help, show=False, priority=True, id=a.id)
            for a in actions_of(page)
        ),
        *(Binding(str(n), f"answer({n})", show=False, priority=True) for n in range(1, 10)),
    ]
