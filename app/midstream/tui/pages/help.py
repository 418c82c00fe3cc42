"""Help: the keys by topic, from the same table as the bindings; what is active comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from msgspec import Struct
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.widgets import Input

from midstream.actions import ACTIONS, WRITING, Action, Group, Place, actions_on
from midstream.settings import SETTINGS
from midstream.tui.glyphs import Glyphs
from midstream.tui.keymap import all_keys
from midstream.tui.pages.sheet import KeySheet, SheetScreen
from midstream.tui.themes import Palette
from midstream.tui.widgets.fields import LineField
from midstream.words import WORDS, in_review

_GAP: Final = 2
"""Cells between two topics."""
_FRAME: Final = 5
"""Rows of the sheet that are no keys: border, topics, gap, and one for a sentence that wraps."""

BASICS: Final = (
    ("", "Type an instruction below the code; the change streams in as a diff.", ""),
    ("", "Decide each hunk as soon as it is complete: only accepted ones are written to disk.", ""),
    ("", "What other programs have written is kept or put back.", ""),
    ("", "", ""),
    ("click", "Move the cursor; on a key in the bottom row, press it", ""),
    ("drag", "Mark lines", ""),
    ("wheel", "Scroll", ""),
    ("", "Bars right of the code show where the file has hunks; click one to go there.", ""),
    ("shift+drag", "Select text in the terminal (Option on a Mac)", ""),
)
"""Sentences beside the keys of actions."""


class Topic(Struct, frozen=True):
    """One page of help.

    Attributes:
        title: A word or two, for the row of topics.
        rows: Keys and sentence of each action, and other words to find it by.
    """

    title: str
    rows: tuple[tuple[str, str, str], ...]


def review_topics(
    keys: Mapping[str, str], *, composing: bool, reviewing: bool, read_only: bool
) -> tuple[Topic, ...]:
    """The topics of the review screen.

    Args:
        keys: Keys by action id.
        composing: Whether the composer has the keys, so that they come first.
        reviewing: Whether hunks are kept or put back, not accepted or rejected.
        read_only: Whether it is a range of commits that is reviewed.
    """
    rows: dict[str, list[Action]] = {group.value: [] for group in Group}
    writing: list[Action] = []
    for action in ACTIONS:
        refused = read_only and action.id in WRITING
        if keys[action.id] and not refused and not action.id.endswith(".anywhere"):
            chosen = writing if action.place is Place.COMPOSER else rows[str(action.group)]
            chosen.append(action)
    topics = [_topic(title, keys, actions, reviewing) for title, actions in rows.items()]
    topics.insert(0 if composing else len(topics), _topic("Write", keys, writing, reviewing))
    words = tuple((word, meaning, "") for word, meaning in WORDS)
    return (*topics, Topic("Basics", BASICS), Topic("Words", words))


def settings_topic(key: str) -> Topic:
    """The settings, which only a search shows.

    Args:
        key: Opens their page.
    """
    return Topic("Settings", tuple((key, f"Setting {one.label}", one.also) for one in SETTINGS))


def page_topics(
    title: str, page: Place, keys: Mapping[str, str], *, reviewing: bool
) -> tuple[Topic, ...]:
    """The topics of a page: its own keys, and those that every page has."""
    active = [action for action in actions_on(page) if keys[action.id]]
    own, common = (
        [action for action in active if (action.place is Place.PAGE) is wanted]
        for wanted in (False, True)
    )
    return _topic(title, keys, own, reviewing), _topic("Every page", keys, common, reviewing)


def _topic(
    title: str, keys: Mapping[str, str], actions: Sequence[Action], reviewing: bool
) -> Topic:
    return Topic(
        title,
        tuple(
            (
                all_keys(keys, action.id),
                in_review(action.help) if reviewing else action.help,
                f"{action.help} {action.also}",
            )
            for action in actions
        ),
    )


class HelpScreen(SheetScreen):
    """A row of topics, the keys of one of them, and a search through all.

    Args:
        palette: Colours.
        glyphs: Signs.
        topics: The topics; the first one is shown.
        searched: What only a search finds.
    """

    CLOSING = (*SheetScreen.CLOSING, "question_mark", "f1")
    DEFAULT_CSS = """
    HelpScreen #topics { padding: 0 2; height: 1; }
    HelpScreen Input {
        display: none; border: none; height: 1; padding: 0; margin: 0 2; background: $ms-panel;
        color: $ms-foreground;
    }
    HelpScreen Input:focus { border: none; background-tint: $ms-panel 0%; }
    HelpScreen.-searching Input { display: block; }
    HelpScreen.-searching #topics { display: none; }
    HelpScreen KeySheet { height: 1fr; margin-top: 1; }
    """
    STEPS: ClassVar[Mapping[str, int]] = {
        "tab": 1,
        "right": 1,
        "l": 1,
        "shift+tab": -1,
        "left": -1,
        "h": -1,
    }

    def __init__(
        self,
        palette: Palette,
        glyphs: Glyphs,
        topics: Sequence[Topic],
        searched: Sequence[Topic] = (),
    ) -> None:
        super().__init__(palette, glyphs, "Keys")
        self._searched = tuple(searched)
        self.topics = tuple(topics)
        self._at = 0

    def compose_head(self) -> ComposeResult:
        topics = self.written(self._titles)
        topics.id = "topics"
        yield topics
        yield LineField(
            placeholder="part of a sentence, or a key", compact=True, select_on_focus=False
        )

    def compose_sheet(self) -> ComposeResult:
        yield self.written(self._keys)

    def on_mount(self) -> None:
        self.box.styles.height = max(len(topic.rows) for topic in self.topics) + _FRAME
        # Another topic, or what a search finds, has its size only after a layout.
        self.watch(self.query_one(KeySheet), "virtual_size", lambda _: self.tell(), init=False)

    @property
    def topic(self) -> Topic:
        """The one that is shown."""
        return self.topics[self._at]

    @property
    def _searching(self) -> bool:
        return self.has_class("-searching")

    def tell(self) -> None:
        words = [] if self._searching or len(self.topics) == 1 else ["tab next topic"]
        words += ["up down scroll"] if self.scrolls else []
        words += ["esc ends the search"] if self._searching else ["/ search", "esc closes"]
        self.box.border_subtitle = ", ".join(words)

    def _titles(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        for number, topic in enumerate(self.topics):
            chosen = topic is self.topic
            style = self._palette.style("accent" if chosen else "muted", bold=chosen)
            line.append(" " * _GAP if number else "")
            line.append(topic.title, style)
        return line

    def _keys(self) -> RenderableType:
        palette = self._palette
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", no_wrap=True, width=14)
        table.add_column(ratio=1)
        topics = self._found() if self._searching else (self.topic,)
        for topic in topics:
            if self._searching:
                table.add_row("", Text(topic.title, palette.style("accent", bold=True)))
            for keys, sentence, _ in topic.rows:
                table.add_row(
                    Text(keys, palette.style("foreground", bold=True)),
                    Text(sentence, palette.style("foreground")),
                )
        if not topics:
            table.add_row(
                "", Text("No key does that; : lists all actions.", palette.style("muted"))
            )
        return table

    def _found(self) -> tuple[Topic, ...]:
        """The rows of all topics that have every word that was typed."""
        words = self.query_one(Input).value.lower().split()
        found = (
            Topic(
                topic.title,
                tuple(
                    row
                    for row in topic.rows
                    if row[0] and all(word in " ".join(row).lower() for word in words)
                ),
            )
            for topic in (*self.topics, *self._searched)
        )
        return tuple(topic for topic in found if topic.rows)

    @on(events.Click, "#topics")
    def _clicked(self, event: events.Click) -> None:
        event.stop()
        end = 0
        offset = event.get_content_offset(self.query_one("#topics"))
        for number, topic in enumerate(self.topics):
            start, end = end, end + len(topic.title) + _GAP
            if offset is not None and start <= offset.x < end - _GAP:
                self._show(number)

    def _show(self, number: int) -> None:
        self._at = number % len(self.topics)
        self._write()

    def _search(self, wanted: bool) -> None:
        self.set_class(wanted, "-searching")
        field = self.query_one(Input)
        field.value = ""
        # At once: the next key may have been typed already.
        self.set_focus(field if wanted else self.query_one(KeySheet))
        self._write()

    def _write(self) -> None:
        self.write_again()
        self.query_one(KeySheet).scroll_home(animate=False)
        self.call_after_refresh(self.tell)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self._write()

    def on_key(self, event: events.Key) -> None:
        """Go to another topic, search, or close."""
        if self._searching:
            if event.key not in ("escape", "ctrl+c"):
                sheet = self.query_one(KeySheet)
                {"down": sheet.scroll_down, "up": sheet.scroll_up}.get(event.key, lambda: None)()
                return
            self._search(False)
        elif event.key in self.STEPS:
            self._show(self._at + self.STEPS[event.key])
        elif event.key == "slash":
            self._search(True)
        else:
            super().on_key(event)
            return
        event.stop()
        event.prevent_default()
