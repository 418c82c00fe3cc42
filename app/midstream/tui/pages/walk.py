"""The walk page: what to read first, what is decided at once, and what is left, in one screen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from rich.text import Text

from midstream.actions import Place
from midstream.counting import counted
from midstream.edits.groups import HunkGroup
from midstream.edits.hunks import Hunk
from midstream.edits.kinds import ChangeKind
from midstream.pairing.session import PairingSession
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.page import PageScreen
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow

LOOK_S: Final = 0.3
"""Seconds between two looks at what has arrived."""
MAX_PLACES: Final = 200
"""Hunks whose places are listed beside a row."""
MAX_LINES: Final = 12
"""Lines of an example."""
_RISKY: Final = "risky"
_UNREAD: Final = "unread"


@dataclass(frozen=True, slots=True)
class ToHunk:
    """Leave the page for a hunk."""

    hunk: Hunk


class GroupDecision(Protocol):
    """Decides the waiting hunks of a group, and returns the level and the text of a notice."""

    async def __call__(self, group: HunkGroup, *, accept: bool) -> tuple[str, str]:
        """Accept or reject the group, once one of it was read."""
        ...


class WalkScreen(PageScreen):
    """The groups and sections of a change; dismissed with a ``ToHunk`` or nothing."""

    PAGE = Place.WALK
    TITLE_WORDS = "Walk"
    CHOOSE = "walk.open"
    BINDINGS: ClassVar = page_bindings(Place.WALK)

    def __init__(
        self, services: AppServices, session: PairingSession, decide: GroupDecision
    ) -> None:
        super().__init__(services)
        self._session = session
        self._decide_group = decide
        self._seen: object = None
        self._parts: dict[str, tuple[int, ...]] = {}
        self._groups: dict[str, HunkGroup] = {}

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(LOOK_S, self._look)

    def _look(self) -> None:
        """Show what has changed since the last look."""
        through = self._session.walk
        seen = (self._session.hunks.version, id(through.walk), through.busy, through.on)
        if seen != self._seen:
            self._seen = seen
            self.show_all()

    @property
    def group(self) -> HunkGroup | None:
        """The group under the cursor."""
        return self._groups.get(self.list.value or "")

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        through = self._session.walk
        walk = through.walk
        everything = through.present(walk.order)
        waits = sum(hunk.waits for hunk in everything)
        key = self.services.key_for("hunk.next_undecided")
        self.title_row.show(
            (f"{counted(len(everything), 'hunk')}, {waits:,} left", "foreground"),
            (f"{counted(through.decisions, 'decision')} to make", "foreground"),
            ("reading" if through.busy else "", "muted"),
            (f"{key} follows {'the walk' if through.on else 'the files'}", "muted"),
        )
        self._parts, self._groups = {}, {}
        self.show_rows([*self._single_rows(everything), *self._group_rows()])
        self.show_detail()
        self.show_keys()

    def _single_rows(self, everything: Iterable[Hunk]) -> Iterable[ListRow]:
        session, through = self._session, self._session.walk
        risky = [hunk for hunk in everything if through.why_first(hunk)]
        unread = [
            hunk.id
            for hunk in everything
            if hunk.state == "accepted" and session.attention.was_unread(hunk)
        ]
        if risky or unread or through.walk.sections:
            yield ListRow(None, ((" one by one", "accent"),))
        if risky:
            yield self._row(_RISKY, "flagged, held back", [hunk.id for hunk in risky], "warning")
        first = {hunk.id for hunk in risky}
        for section in through.walk.sections:
            if rest := [hunk_id for hunk_id in section.hunks if hunk_id not in first]:
                yield self._row(section.kind.name, section.kind.value, rest)
        if unread:
            yield self._row(_UNREAD, self.worded("accepted unread"), unread, "warning", done="")

    def _group_rows(self) -> Iterable[ListRow]:
        groups = self._session.walk.walk.groups
        if groups:
            yield ListRow(None, ((" at once, after one was read", "accent"),))
        for group in groups:
            self._groups[group.key] = group
            renames = group.kind is ChangeKind.RENAME
            title = f"{group.kind.value}: {group.title}" if renames else group.title
            yield self._row(group.key, title, group.hunks)
            if words := self._session.titles.of(group):
                yield ListRow(None, ((f"    the model: “{visible(words)}”", "muted"),))

    def _row(
        self, key: str, title: str, ids: Iterable[int], role: str = "foreground", done: str = "done"
    ) -> ListRow:
        present = self._session.walk.present(ids)
        self._parts[key] = tuple(hunk.id for hunk in present)
        left = sum(hunk.waits for hunk in present)
        files = len({hunk.path for hunk in present})
        size = f"  {counted(len(present), 'hunk')}, {counted(files, 'file')}"
        state = f"  {left:,} left" if left else f"  {done}"
        is_done = bool(done and not left)
        return ListRow(
            key,
            ((f"  {visible(title)}", "muted" if is_done else role),),
            ((size, "muted"), (f"{state:>11}", "success" if is_done else "foreground")),
        )

    def show_detail(self) -> None:
        text = Text(no_wrap=False, overflow="fold")
        plain, muted = self.palette.style("foreground"), self.palette.style("muted")
        through = self._session.walk
        present = through.present(self._parts.get(self.list.value or "", ()))
        title = ""
        if not self._parts:
            text.append("Nothing to walk through yet.\n\n", plain)
            text.append(self._purpose(), muted)
        if (group := self.group) is not None:
            title = group.kind.value
            text.append(f"{visible(group.why)}\n", plain)
            _, alone = through.together(group)
            for hunk, why in alone[:5]:
                place = f"{hunk.path}:{hunk.start + 1}"
                warning = self.palette.style("warning")
                text.append(f"apart: {visible(place)}, {visible(why)}\n", warning)
            if not through.example_read(group):
                text.append("not read yet; the first one is the example\n", muted)
            text.append("\n")
            self._show_example(text, present[:1])
        for hunk in present[:MAX_PLACES]:
            mark = " " if hunk.waits else self.glyphs.states.get(hunk.state, "·")
            text.append(f"{mark} {visible(hunk.path)}:{hunk.start + 1}\n", plain)
            if group is None:
                alone = through.why_alone(hunk)
                for why in filter(None, (alone, *(e.why for e in through.evidence(hunk)[:2]))):
                    text.append(f"    {visible(why)}\n", muted)
        if len(present) > MAX_PLACES:
            text.append(f"and {len(present) - MAX_PLACES:,} more\n", muted)
        self.detail.show(text, title)

    def _purpose(self) -> str:
        key = self.services.key_for("review.external")
        return (
            "The walk puts a large change in an order to read: first what is flagged or changes an "
            "interface, then the rest. Hunks that are the same are decided at once, after one was "
            "read.\n\nIt has rows once there are hunks: send an instruction, or have what other "
            f"programs write reviewed ({key} on the main screen)."
        )

    def _show_example(self, text: Text, hunks: Iterable[Hunk]) -> None:
        for hunk in hunks:
            for sign, lines, role in (("-", hunk.old, "error"), ("+", hunk.new, "success")):
                for line in lines[:MAX_LINES]:
                    text.append(f"{sign} {visible(line)}\n", self.palette.style(role))
                if len(lines) > MAX_LINES:
                    text.append(f"{sign} and {len(lines) - MAX_LINES:,} more\n")
            text.append("\n")

    def hidden_hints(self) -> frozenset[str]:
        if not self._parts:
            return frozenset({"walk.open", "walk.accept", "walk.reject", "walk.titles", "walk.by"})
        hidden = () if self.group is not None else ("walk.accept", "walk.reject")
        return frozenset(hidden if self._groups else (*hidden, "walk.titles"))

    def hint_words(self) -> dict[str, str]:
        return {"walk.by": "follow the files" if self._session.walk.on else "follow the walk"}

    # doing

    def action_open(self) -> None:
        """Go to the first hunk of the row that waits, or to its first."""
        through = self._session.walk
        ids = self._parts.get(self.list.value or "", ())
        if hunks := (through.left(ids) or through.present(ids)):
            through.on = True
            self.dismiss(ToHunk(hunks[0]))

    def action_accept(self) -> None:
        self._decide(accept=True)

    def action_reject(self) -> None:
        self._decide(accept=False)

    def _decide(self, *, accept: bool) -> None:
        if (group := self.group) is None:
            self.notices.say(
                "info", "Only a group can be decided here; Enter goes to the first of these."
            )
            return

        async def work() -> None:
            level, sentence = await self._decide_group(group, accept=accept)
            self.notices.say(level, sentence)
            self.show_all()

        self.work.run(work)

    def action_titles(self) -> None:
        """Have the model say in a few words what each group does."""
        session = self._session
        through, titles = session.walk, session.titles
        groups = [
            (group, present[0])
            for group in through.walk.groups
            if not titles.of(group) and (present := through.present(group.hunks))
        ]
        if not groups:
            self.notices.say("info", "Every group has a title.")
            return
        self.notices.say("info", f"{session.server.name_or_the_model} is asked for titles.")

        async def work() -> None:
            count = await titles.ask(groups)
            left = len(groups) - count
            more = f"; {left:,} left without" if left else ""
            words = f"{counted(count, 'group')} titled in the model's words{more}."
            self.notices.say("warning" if left else "info", words)
            self.show_all()

        self.work.beside(work, "titles", exclusive=True)  # keys do not wait for a model

    def action_switch(self) -> None:
        self._session.walk.on = not self._session.walk.on
        self.show_all()
