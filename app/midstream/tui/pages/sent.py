"""The page of what was sent: every request with its pieces, and each as it went out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, Final

from rich.text import Text

from midstream.actions import Place
from midstream.counting import counted
from midstream.guard.secrets import find_secrets, mask_text
from midstream.pairing.request.sent import SYSTEM_TEXT, Sent, SentLog, SentPart
from midstream.tui.clock import when
from midstream.tui.diff.painter import breaks, hanging
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.page import PageScreen
from midstream.tui.pages.sheet import Paragraph, ReadingScreen
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow

_WRAPPED_FROM: Final = 80
"""Characters of a line of a system text from which on its sentence goes on in the next one."""


class SentScreen(PageScreen):
    """What was sent, the latest first, and before it what would be sent now.

    Args:
        services: The application.
        log: What was sent.
        draft: What is being written.
    """

    PAGE = Place.SENT
    TITLE_WORDS = "Sent"
    DETAIL = "sent-text"
    CHOOSE = "sent.read"
    BINDINGS: ClassVar = page_bindings(Place.SENT)

    def __init__(self, services: AppServices, log: SentLog, draft: Sent | None) -> None:
        super().__init__(services)
        self.requests = ([] if draft is None else [draft]) + list(log)

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        many = sum(sent.at is not None for sent in self.requests)
        self.title_row.show(
            (f"{counted(many, 'request')} so far" if many else "nothing sent yet", "muted"),
            ("kept in memory only", "muted"),
        )
        self.list.show([row for n in range(len(self.requests)) for row in self._rows(n)])
        self.show_detail()
        self.show_keys()

    def _rows(self, number: int) -> Iterator[ListRow]:
        sent = self.requests[number]
        when_sent = "not sent yet" if sent.at is None else when(sent.at)
        yield ListRow(
            f"{number}",
            ((f" {sent.kind}", "accent!"), (f"  {_in_one_line(sent.said)}", "foreground")),
            ((f"  {when_sent}", "warning" if sent.at is None else "muted"),),
        )
        for place, part in enumerate(sent.parts):
            indent = " " * (5 if part.inside else 3)
            yield ListRow(
                f"{number}.{place}",
                ((f"{indent}{visible(part.name)}", "foreground"), (_told(part.facts), "muted")),
                ((f"  ~{part.tokens:,} tokens", "muted"),),
            )
        if left_out := sent.context.left_out:
            names = ", ".join(visible(each.name) for each in left_out)
            yield ListRow(f"{number}.left", (("   left out", "warning"), (_told(names), "muted")))

    @property
    def sent(self) -> Sent | None:
        """The request that the cursor is on, or on a piece of."""
        value = self.list.value
        return None if value is None else self.requests[int(value.partition(".")[0])]

    def paragraphs(self) -> Iterator[Paragraph]:
        """The full text of the row under the cursor."""
        sent, place = self.sent, (self.list.value or "").partition(".")[2]
        if sent is None:
            return
        if place == "left":
            lines = tuple((str(each), "warning") for each in sent.context.left_out)
            yield Paragraph("Left out", lines)
        elif place:
            yield _shown(sent.parts[int(place)])
        else:
            yield from self.whole(sent)

    def whole(self, sent: Sent) -> Iterator[Paragraph]:
        """A request from its first word to its last."""
        verb = "Would go" if sent.at is None else "Went"
        lines = [(f"{verb} to {sent.recipient}.", "foreground")]
        size = f"About {sent.tokens:,} tokens, estimated from its length"
        size += f"; the server counted {sent.counted:,} in its own way" if sent.counted else ""
        lines.append((f"{size}.", "muted"))
        if sent.context.parts:
            limit = f"The context may take up to {sent.context.limit:,} tokens."
            lines.append((limit, "muted"))
        if sent.kind == "message":
            lines.append(("The agent does not tell what it sends to its model.", "muted"))
        whole = [part for part in sent.parts if not part.inside]
        if hidden := sum(map(_credentials, (part.text for part in whole))):
            were = "would be" if sent.at is None else "were"
            them = counted(hidden, "credential")
            lines.append((f"{them} {were} sent as written and masked only here.", "warning"))
        lines += [(f"left out: {each}", "warning") for each in sent.context.left_out]
        yield Paragraph(_in_one_line(sent.said), tuple(lines))
        yield from map(_shown, whole)

    def show_detail(self) -> None:
        text = Text(no_wrap=False, overflow="fold")
        paragraphs = list(self.paragraphs())
        for paragraph in paragraphs:
            if len(paragraphs) > 1:
                text.append(f"{visible(paragraph.heading)}\n", self.palette.style("accent"))
            for line, role in paragraph.lines:
                self._append(text, line, role)
            text.append("\n")
        self.detail.show(text, paragraphs[0].heading if len(paragraphs) == 1 else "in full")

    def _append(self, text: Text, line: str, role: str) -> None:
        """Append a line as it went out; where it goes on below, a mark says that it is the same."""
        room = self.detail.columns
        stops = (0, *breaks(line, room), len(line))
        lead = f"{self.glyphs.wrapped:>{hanging(line, room) - 1}} "
        for start, stop in pairwise(stops):
            text.append(lead if start else "", self.palette.style("muted"))
            text.append(f"{line[start:stop]}\n", self.palette.style(role))

    # doing

    def action_read(self) -> None:
        """Read the row in full."""
        self._read(list(self.paragraphs()))

    def action_read_all(self) -> None:
        """Read the whole request."""
        if (sent := self.sent) is not None:
            self._read(list(self.whole(sent)))

    def _read(self, paragraphs: list[Paragraph]) -> None:
        if paragraphs:
            self.services.open_screen(
                ReadingScreen(self.palette, self.glyphs, "As it went out", paragraphs)
            )


def _shown(part: SentPart) -> Paragraph:
    """A piece as it may be shown."""
    lines = mask_text(part.text).split("\n")
    if part.name == SYSTEM_TEXT:
        lines = _unwrapped(lines)
    facts = ", ".join(filter(None, (f"~{part.tokens:,} tokens", part.facts)))
    return Paragraph(
        part.name, ((facts, "muted"), *((visible(line), "foreground") for line in lines))
    )


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """The paragraphs of a text that was wrapped where it was written, each on a line of its own.

    Wrapped once more as it is, every second line would hold a word or two.
    """
    paragraphs: list[str] = []
    before = ""
    for line in lines:
        if len(before) >= _WRAPPED_FROM and line.strip():
            paragraphs[-1] += f" {line}"
        else:
            paragraphs.append(line)
        before = line
    return paragraphs


def _credentials(text: str) -> int:
    return sum(len(find_secrets(line)) for line in text.splitlines())


def _told(words: str) -> str:
    return f"  {words}" if words else ""


def _in_one_line(text: str) -> str:
    return visible(" ".join(text.split()))
