"""The commit page: which accepted changes are staged, staging them, a message, the commit.

The page opens with the cursor in the message, so that typing a message stages and commits nothing.

It shows what ``pairing.files.commit`` says and asks it to act.  A message that was begun stays with
the program until it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, cast

from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult

from midstream.actions import Place
from midstream.counting import counted
from midstream.edits.rows import RowKind
from midstream.errors import UserError
from midstream.pairing.files.commit import (
    Changes,
    Comparison,
    FileChange,
    FileDiff,
    OtherChange,
)
from midstream.pairing.files.staged import Standing
from midstream.pairing.turn.subject import commit_message
from midstream.tui.diff.patch import DiffWriter
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.page import PageScreen
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import MessageField
from midstream.tui.widgets.key_bar import KeyHint
from midstream.tui.widgets.row_list import ListRow, Piece, RowList
from midstream.tui.widgets.welcome import TourLine

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession
    from midstream.tui.themes import Palette

MAX_SHOWN: Final = 800
"""Lines of one change that are shown."""
MAX_ROWS: Final = 6
"""Rows of the list where the change stands below it."""
LOW: Final = 20
"""Screens with fewer rows show no recent commits there."""
SLOW_S: Final = 0.5
"""Seconds after which a notice says that git is still staging."""
_LEAVING: Final = frozenset({"page.close", "quit.app"})
"""Actions that wait for nothing."""
_FREE: Final = frozenset({"commit.message", "commit.editor", "commit.editor.anywhere", "page.help"})
"""Actions that do not ask what there is to commit."""
_OTHER: Final = "\0"
"""Marks the rows of files without accepted changes; no path has it."""
_OTHERS: Final = {
    Standing.UNKEPT: ("Staged by another program, not kept yet", "error"),
    Standing.SINCE: ("Staged since the review began, also committed", "warning"),
    Standing.YOURS: ("Staged by you, also committed", "muted"),
}
"""Headings for staged changes other than the accepted ones."""
_PREFILLED: Final = "prefilled from your instructions"
_UNKEPT: Final = "not kept", "error"
_WORDS: Final = {
    "unstaged": ("not staged", "warning"),
    "partly": ("partly staged", "warning"),
    "staged": ("staged", "success"),
    "committed": ("committed", "muted"),
    "conflict": ("conflict", "error"),
}


class CommitScreen(PageScreen):
    """Stage and commit; dismissed with a sentence about the commit, or ``None``."""

    PAGE = Place.COMMIT
    TITLE_WORDS = "Commit"
    CHOOSE = "commit.stage"
    DETAIL = "change"
    BINDINGS: ClassVar = page_bindings(Place.COMMIT)

    changes: Changes | None = None
    recent: Sequence[str] = ()
    """Subjects of the newest commits."""
    failure: tuple[str, str] | None = None
    """Why git did not commit: the sentence, and everything that git and the hooks wrote."""
    amend = False
    """Whether the next commit is to replace the last one."""

    def __init__(self, services: AppServices, session: PairingSession) -> None:
        super().__init__(services)
        self.session = session
        self._offered = ""
        """The message that the page has begun by itself."""
        self._begun = ""
        """The message that the note beside the title is about."""
        self._others: dict[str, FileDiff] = {}
        """What is known of ``Changes.others``, by path."""
        self._long: dict[str, tuple[Comparison, FileDiff]] = {}
        """Diffs that took long, by path, with what was compared."""
        self._writers: dict[str, tuple[FileDiff, DiffWriter]] = {}
        """The colours of each file's diff, by row of the list."""
        self._outside = False
        """Whether an editor has the message."""
        self._committing = False
        """Whether git makes the commit."""
        self._reading = True
        """Whether it is not known yet which files there are."""
        self._kept: list[events.Key | events.Paste] = []
        """Keys that were typed meanwhile and have to wait."""
        self.tour = TourLine(self.palette)

    def compose_body(self) -> ComposeResult:
        yield from super().compose_body()
        yield MessageField(
            self.palette, self.services.commit_message, "What changed, in one line; then why."
        )
        yield self.tour

    def on_mount(self) -> None:
        super().on_mount()
        self.tour.show(self.services.tour_of_commit)
        self._look()

    def focus_first(self) -> None:
        self.action_message()

    def set_palette(self, palette: Palette) -> None:
        self.message.set_palette(palette)
        self.tour.set_palette(palette)
        super().set_palette(palette)

    def _offer(self, text: str) -> None:
        """Begin the message; it is selected, so that what is typed takes its place."""
        if text:
            self._offered = text
            self._begin(text, _PREFILLED)
            self.message.field.select_all()

    def _begin(self, text: str, note: str) -> None:
        """Put a message into the field, with a note that stays as long as it is unchanged."""
        self._begun = text
        self.message.put(text)
        self.message.show_note(note)

    @property
    def message(self) -> MessageField:
        return self.query_one(MessageField)

    @property
    def file(self) -> FileChange | None:
        """The file under the cursor."""
        value = self.list.value
        files = () if self.changes is None else self.changes.files
        return next((file for file in files if file.path == value), None)

    @property
    def _other(self) -> OtherChange | None:
        """The change under the cursor, if nothing of that file was accepted."""
        others = () if self.changes is None else self.changes.others
        return next((one for one in others if f"{_OTHER}{one.path}" == self.list.value), None)

    @property
    def _unkept(self) -> str | None:
        """The file under the cursor, by its path from the root, if its change was not kept."""
        if (file := self.file) is not None:
            return file.path if file.unkept else None
        other = self._other
        return None if other is None or other.standing is not Standing.UNKEPT else other.rel

    def _look(self) -> None:
        async def work() -> None:
            try:
                await self._read()
            finally:
                # Input that has arrived by then is handled first, so that it is kept as well.
                self._keyboard.call_later(self._release)
            files = () if self.changes is None else self.changes.files
            own = any(not file.earlier and file.state != "committed" for file in files)
            if own and not self.message.text:
                self._offer(commit_message(self.session.turns, self.session.hunks))
            if not (self._is_about_something or self.message.text):
                self.action_files()
            self.recent = await self.session.commit.recent()
            self.show_all()

        self.work.run(work)

    @property
    def _is_about_something(self) -> bool:
        """Whether there is anything that a message could be about."""
        changes = self.changes
        return changes is not None and not changes.trouble and bool(changes.files or changes.others)

    async def _read(self) -> None:
        changes = await self.session.commit.look(amend=self.amend)
        self._long = await asyncio.to_thread(_still_compared, changes, dict(self._long))
        self.changes = changes
        self._others.clear()
        self.show_all()
        self.work.beside(self._compare, "diffs", exclusive=True)

    async def _compare(self) -> None:
        """Make the diffs that take long."""
        for file in () if self.changes is None else self.changes.files:
            if self._diff(file) is None:
                diff = await asyncio.to_thread(file.compared.diff)
                self._long[file.path] = file.compared, diff
                self.show_all()

    def _diff(self, file: FileChange) -> FileDiff | None:
        """The diff of a file, ``None`` if it is still being made."""
        compared, diff = self._long.get(file.path, (None, None))
        return file.diff or (diff if compared is file.compared else None)

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        changes = self.changes
        if changes is None:
            self.title_row.show(("reading what is staged", "muted"))
            return
        branch: Piece = (f"on {changes.branch}" if changes.branch else "", "foreground")
        summary = _summary(changes)
        if (last := changes.amends) is not None:
            summary = ((f"amends {last.id[:8]} {last.message.splitlines()[0]}", "warning"),)
        skimmed = self.session.attention.brief(self.session.hunks)
        self.title_row.show(branch, *summary, (skimmed, "warning"))
        rows = [self._row(file) for file in changes.files if not file.earlier]
        if earlier := [self._row(file) for file in changes.files if file.earlier]:
            rows += [
                ListRow(None, ((self.worded(" Accepted in an earlier session"), "muted!"),)),
                *earlier,
            ]
        for standing, (words, role) in _OTHERS.items():
            others = [other for other in changes.others if other.standing is standing]
            if others and standing is Standing.YOURS and changes.amends is not None:
                words = "In the commit to amend, or staged by you"
            if others:
                rows.append(ListRow(None, ((f" {words}", role),)))
                rows += map(self._other_row, others)
        narrow = self.has_class("-narrow")
        if rows and self.recent and narrow and len(rows) < MAX_ROWS and self.size.height >= LOW:
            words = self.glyphs.separator.join(f" {visible(s)} " for s in self.recent).strip()
            rows.append(ListRow(None, ((" Recent  ", "muted"), (words, "muted"))))
        self.list.styles.height = min(max(len(rows), 1), MAX_ROWS) if narrow or not rows else "1fr"
        if rows and self.recent and not narrow:
            rows += [ListRow(None, ()), ListRow(None, ((" Recent commits", "muted!"),))]
            rows += [ListRow(None, ((f"  {visible(s)}", "muted"),)) for s in self.recent]
        self.show_rows(rows)
        self.show_detail()
        if changes.trouble:
            self.notice.show("warning", changes.trouble)
        self.show_keys()

    def _row(self, file: FileChange) -> ListRow:
        words, role = _UNKEPT if file.unkept else _WORDS[file.state]
        box = {"staged": "x", "committed": "x", "partly": "-", "conflict": "!"}.get(file.state, " ")
        box = "!" if file.unkept else box
        counts: list[Piece] = [("  comparing", "muted")]
        if (diff := self._diff(file)) is not None:
            added, deleted = diff.count(RowKind.ADDED), diff.count(RowKind.DELETED)
            counts = [
                (f"  +{added}", "success" if added else "muted"),
                (f" -{deleted}", "error" if deleted else "muted"),
            ]
        state: Piece = (f"  {words:>13}", role)
        mark = "muted" if file.state == "committed" else role
        name: Piece = visible(file.path), "muted" if file.state == "committed" else "foreground"
        return ListRow(file.path, ((f" [{box}] ", mark), name), (*counts, state))

    def _other_row(self, other: OtherChange) -> ListRow:
        unkept = other.standing is Standing.UNKEPT
        mark: Piece = (" [!] ", "error") if unkept else (" [x] ", "success")
        right = ((f"  {_UNKEPT[0]:>13}", _UNKEPT[1]),) if unkept else ()
        return ListRow(f"{_OTHER}{other.path}", (mark, (visible(other.path), "foreground")), right)

    def show_detail(self) -> None:
        """What a commit changes in the file under the cursor, or why git did not commit."""
        file, palette, value = self.file, self.palette, self.list.value or ""
        title = value.removeprefix(_OTHER)
        text = Text(no_wrap=True, overflow="crop")
        if self.failure is not None:
            title = "What git and your hooks wrote"
            self._tell_failure(text, *self.failure)
        elif file is not None:
            for line, role in self._facts(file):
                text.append(f"{visible(line)}\n", palette.style(role))
            if (diff := self._diff(file)) is not None:
                self._tell_diff(text, file.path, diff)
            else:
                text.append("comparing its lines\n", palette.style("muted"))
        elif (other := self._other) is not None:
            if other.standing is Standing.UNKEPT:
                text.append(f"{self._unkept_words('')}\n", palette.style("error"))
            if (diff := self._others.get(title)) is not None:
                self._tell_diff(text, title, diff)
            else:
                text.append("reading it\n", palette.style("muted"))
                self._read_other(title)
        elif self.changes is not None and not self.list.rows:
            key = self.services.key_for("hunk.accept")
            words = (
                "Nothing was accepted in this session, so there is nothing to commit; "
                f"beside the code, {key} accepts the hunk under the cursor."
            )
            text = Text(self.worded(words), palette.style("foreground"))
        self.detail.show(text, title)

    def _facts(self, file: FileChange) -> Iterator[tuple[str, str]]:
        """Lines above a diff, with their roles."""
        if file.earlier:
            yield self.worded("accepted in an earlier session"), "muted"
        if file.new:
            diff = self._diff(file)
            size = "" if diff is None else f", {counted(diff.count(RowKind.ADDED), 'line')}"
            yield f"new file{size}", "muted"
        if file.program is not None:
            yield "executable" if file.program else "no longer executable", "muted"
        if file.trouble:
            yield file.trouble, "error"
        if file.unkept:
            yield self._unkept_words(file.path), "error"
        elif file.state == "partly":
            key = self.services.key_for("commit.stage")
            yield f"some of it is not staged and is left out; {key} stages it", "warning"
        if file.own or file.trouble:
            key = self.services.key_for("commit.whole")
            stays = "stays" if file.own == 1 else "stay"
            stay = f"{counted(file.own, 'other changed line')} {stays} out; " if file.own else ""
            yield f"{stay}{key} takes the whole file", "warning"
        elif file.whole:
            key = self.services.key_for("commit.whole")
            yield f"staged whole; {key} leaves the other lines out again", "warning"
        if file.undecided:
            waits = "waits" if file.undecided == 1 else "wait"
            yield f"{counted(file.undecided, 'hunk')} still {waits} for a decision", "warning"

    def _unkept_words(self, path: str) -> str:
        """Why nothing is committed while another program has staged changes that were not kept."""
        instead = self.changes is not None and path in self.changes.replaceable
        what = "stages what was kept instead" if instead else "unstages them"
        return (
            "another program staged changes here that were not kept, so nothing is committed; "
            f"{self.services.key_for('commit.stage')} {what}"
        )

    def _tell_diff(self, text: Text, path: str, diff: FileDiff) -> None:
        if diff.binary:
            text.append("not a text file\n", self.palette.style("muted"))
            return
        known = self._writers.get(path)
        if known is None or known[0] is not diff:
            known = self._writers[path] = diff, DiffWriter(path, diff)
        known[1].write(text, self.palette, self.glyphs, self.detail.columns, MAX_SHOWN)

    def _read_other(self, path: str) -> None:
        amend = self.amend

        async def work() -> None:
            if path not in self._others:
                self._others[path] = await self.session.commit.other(path, amend=amend)
                self.show_detail()

        self.work.run(work)

    def _tell_failure(self, text: Text, sentence: str, output: str) -> None:
        palette = self.palette
        text.no_wrap, text.overflow = False, "fold"
        for line in output.splitlines() or [sentence]:
            text.append(f"{visible(line)}\n", palette.style("foreground"))

    def hidden_hints(self) -> frozenset[str]:
        changes, hidden = self.changes, {"commit.files"}
        committing = {"commit.commit", "commit.commit.anywhere"}
        if changes is None or changes.trouble or self._committing:
            return frozenset(
                {"commit.stage", "commit.stage_all", "commit.whole", "commit.amend"}
                | {"commit.editor", "commit.editor.anywhere"}
                | committing
                | hidden
            )
        if self._toured:
            hidden.add("commit.commit.anywhere")  # Enter does it
        settled = self.file is None or self.file.state in ("committed", "conflict")
        if settled and self._unkept is None:
            hidden.add("commit.stage")
        if self.file is None or not (self.file.own or self.file.trouble or self.file.whole):
            hidden.add("commit.whole")
        if not changes.stageable:
            hidden.add("commit.stage_all")
        if not changes.staged and not self.amend and not changes.stageable:
            hidden |= committing
        return frozenset(hidden)

    def leading_hints(self) -> Iterator[KeyHint]:
        if self._toured:
            yield KeyHint("enter", "commit", "commit_all")

    def hint_words(self) -> dict[str, str]:
        words = {"commit.amend": "do not amend"} if self.amend else {}
        if self.typing:
            words["page.close"] = "to the files"
        staged = self.file is not None and self.file.state == "staged"
        if self.file is not None and self.changes and self.file.path in self.changes.replaceable:
            words["commit.stage"] = "stage kept"
        elif staged or self._unkept is not None:
            words["commit.stage"] = "unstage"
        if self.file is not None and self.file.whole and not self.file.own:
            words["commit.whole"] = "other lines out"
        if self.changes is not None and not self.changes.staged and not self.amend:
            words["commit.commit.anywhere"] = "stage all, commit"
        return words

    @on(RowList.Highlighted)
    def _looked_on(self) -> None:
        self.failure = None

    @on(MessageField.Edited)
    def _edited(self, event: MessageField.Edited) -> None:
        event.stop()
        own = event.text != self._begun
        # A message that the page proposed is proposed anew when it opens again: the changes may
        # differ by then.
        self.services.commit_message = event.text if own else ""
        if own:
            self.message.show_note("")

    # doing

    def action_message(self) -> None:
        field = self.message.field
        self.set_focus(field)
        if not field.selection.is_empty:
            field.move_cursor(field.document.end)

    def action_files(self) -> None:
        self.set_focus(self.list)

    def keeps(self, event: events.Key | events.Paste) -> bool:
        """Keep keys that act on the files until these are known; other characters are text."""
        bound = self.active_bindings.get(event.key) if isinstance(event, events.Key) else None
        key = "" if bound is None else bound.binding.id
        enters = isinstance(event, events.Key) and event.key == "enter"
        does_step = enters and self._toured
        waits = bool(self._kept) or does_step or (key and key not in _FREE)
        if self._reading and waits and key not in _LEAVING:
            self._kept.append(event)
            return True
        if does_step:
            self.action_commit_all()
            return True
        field = self.message.field
        if enters and self.typing and field.text == self._begun and not field.selection.is_empty:
            self.action_message()  # A new line would take the place of the message.
            return True
        is_text = isinstance(event, events.Paste) or event.is_printable
        if is_text and bound is None and not (self.typing or self._outside):
            self.action_message()
        return False

    @property
    def _toured(self) -> bool:
        """Whether Enter carries out the step of the tour."""
        return bool(self.tour.words.pieces) and not (self.notices.asking or self._outside)

    async def _release(self) -> None:
        """Let the keys act that were kept, in their order and before any other."""
        self._reading = False
        kept, self._kept = self._kept, []
        for event in kept:
            if self.is_current:  # They are not meant for the screen behind.
                await self._keyboard.on_event(event)

    @property
    def _keyboard(self) -> App[object]:
        """The application, which gets all keys first."""
        return cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def _usable(self) -> Changes | None:
        """The changes, if the index can be changed; says why not otherwise."""
        changes = self.changes
        if changes is not None and changes.trouble:
            self.notices.say("warning", changes.trouble)
            return None
        return changes

    def action_stage(self) -> None:
        file, usable, unkept = self.file, self._usable, self._unkept
        if usable is None:
            return
        committing = self.session.commit
        if file is not None and file.path in usable.replaceable:
            self._do(committing.stage_instead(file.path))
        elif unkept is not None:
            self._do(committing.forget_staged(unkept))
        elif file is None:
            return
        elif file.trouble:
            self.notices.say("error", file.trouble)
        elif file.state == "committed":
            words = self.worded("What was accepted")
            self.notices.say("info", f"{words} in {file.path} is committed already.")
        else:
            back = file.state == "staged"
            self._do((committing.unstage if back else committing.stage)(file.path))

    def _do(self, step: Coroutine[object, object, None]) -> None:
        """Change the index and look at it again."""

        def tell() -> None:
            self.notices.say("info", "Git compares and stages; a large file takes a while.")

        async def work() -> None:
            slow = self.set_timer(SLOW_S, tell)
            try:
                await step
                await self._read()
            finally:
                slow.stop()
            self.notices.clear()

        self.work.run(work)

    def action_whole(self) -> None:
        file = self.file
        if file is None or self._usable is None:
            return
        if file.whole and not file.own:
            self._do(self.session.commit.unstage_whole(file.path))
        elif not (file.own or file.trouble):
            self.notices.say("info", f"{file.path} has no other changed lines.")
        else:
            self._do(self.session.commit.stage_whole(file.path))

    def action_stage_all(self) -> None:
        if (changes := self._usable) is None:
            return
        if not changes.stageable:
            self.notices.say(
                "info", self.worded("Everything that was accepted is staged or committed already.")
            )
            return
        self._do(self.session.commit.stage(*changes.stageable))

    def action_amend(self) -> None:
        """Let the next commit replace the last one, or go back to adding one."""
        if (changes := self._usable) is None:
            return
        last = changes.amends

        async def work() -> None:
            self.amend = last is None
            await self._read()
            text, found = self.message.text.strip(), self.changes and self.changes.amends
            self.notices.clear()
            if last is not None:
                if text == last.message:
                    self._begin(self._offered, _PREFILLED if self._offered else "")
            elif not found:
                self.amend = False
                self.notices.say("info", "There is no commit to amend.")
            else:
                if not text or text == self._offered:
                    self._begin(found.message, "the message of the amended commit")
                key = self.services.key_for("commit.amend")
                level, words = "info", f"The next commit replaces {found.id[:8]}"
                if found.published:
                    level, words = "warning", f"{words}, which {found.published[0]} already has"
                self.notices.say(level, f"{words}; {key} makes a new commit instead.")
            self.show_keys()

        self.work.run(work)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys typed before an editor has taken the terminal do nothing."""
        return not self._outside and super().check_action(action, parameters)

    def action_editor(self) -> None:
        """Continue the message in the user's own editor."""
        self._outside = True

        async def work() -> None:
            text = self.message.text
            try:
                edited = await self.services.edit_outside(
                    f"{text}\n" if text else "", "COMMIT_EDITMSG"
                )
            finally:
                self._outside = False
            self.message.put(edited.strip())

        self.work.run(work)

    def action_commit(self) -> None:
        if (changes := self._usable) is None or self._asks_what(changes):
            return
        if changes.staged or self.amend:
            self._commit(changes)
        elif changes.stageable:
            many = counted(len(changes.stageable), "file")
            accepted = self.worded("what was accepted")
            self.notices.ask(
                f"Nothing is staged. Stage {accepted} in {many}, and commit it?",
                ("stage all, commit", self.action_commit_all),
                ("choose files", self.notices.clear),
            )
        else:
            self.notices.say(
                "info", self.worded("Everything that was accepted is committed already.")
            )

    def action_commit_all(self) -> None:
        """Commit; what was accepted is staged first if nothing is."""
        if (changes := self._usable) is None:
            return
        if changes.staged or self.amend or not changes.stageable:
            self.action_commit()
        else:
            self._commit(changes, partial(self.session.commit.stage, *changes.stageable))

    def _asks_what(self, changes: Changes) -> bool:
        """Ask whether the commit is to have what was kept, where the index does not say it."""
        partly = tuple(file.path for file in changes.files if file.state == "partly")
        step = self.session.commit.stage
        if changes.unkept and len(changes.replaceable) == changes.unkept:
            paths, step = changes.replaceable, self.session.commit.stage_instead
            what = f"In {counted(len(paths), 'file')}, what is staged is not what was kept."
        elif changes.unkept:
            return False  # Refused, with what to do.
        elif partly:
            paths = partly
            words = self.worded("Not all that was accepted")
            what = f"{words} in {counted(len(paths), 'file')} is staged."
        elif self.amend and changes.stageable and not changes.chosen:
            paths = changes.stageable
            words = self.worded("What was accepted")
            what = f"{words} in {counted(len(paths), 'file')} is not staged."
        else:
            return False
        commit = partial(self._commit, changes)
        do = "amend" if self.amend else "commit"
        self.action_files()
        self.notices.ask(
            f"{what} Stage it first?",
            (self.worded(f"stage what was accepted, {do}"), partial(commit, partial(step, *paths))),
            *(((f"{do} without it", commit),) if not changes.unkept else ()),
            ("choose files", self.notices.clear),
        )
        return True

    def _commit(self, changes: Changes, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Commit, after a change of the index."""
        session = self.session
        text, amended = self.message.text, changes.amends
        if not text.strip():
            self.action_message()
            self.notices.say("info", "Write one line that says what changed.")
            return

        async def work() -> None:
            self.failure, self._committing = None, True
            self.notices.clear()
            self.show_keys()
            self.notices.say("info", "Committing; git and its hooks run.", lasting=True)
            trailer = self.services.settings.commit_trailer
            try:
                if first is not None:
                    await first()
                commit = await session.commit.commit(
                    text, trailer=trailer, amend=amended is not None
                )
            except UserError as error:
                self._committing = False
                self._fail(error)
                await self._read()
                return
            self.services.commit_message = ""
            await session.external.refresh()
            where = f" on {changes.branch}" if changes.branch else ""
            subject = text.strip().splitlines()[0]
            done = "Committed" if amended is None else f"Amended {amended.id[:8]} to"
            if told := session.commit.from_hooks:
                subject = f"{subject}. {told}"
            self.dismiss(f"{done} {commit[:8]}{where}: {subject}")

        self.work.run(work)

    def _fail(self, error: UserError) -> None:
        """Show why, whole: a hook's last line alone says little."""
        output = str(getattr(error, "output", "")).strip()
        if len(output.splitlines()) > 1:
            self.failure = str(error), output
        self.notices.say("error", str(error))
        self.show_detail()
        self.detail.rewind()


def _still_compared(
    changes: Changes, known: Mapping[str, tuple[Comparison, FileDiff]]
) -> dict[str, tuple[Comparison, FileDiff]]:
    """The known diffs of unchanged files, with those compared now (blocking)."""
    return {
        file.path: (file.compared, known[file.path][1])
        for file in changes.files
        if file.path in known and known[file.path][0] == file.compared
    }


def _summary(changes: Changes) -> tuple[Piece, ...]:
    """How much there is to commit, for the title."""
    count, staged = len(changes.files), changes.staged
    left = sum(file.state != "committed" for file in changes.files)
    if count and not left and not staged:
        return (("nothing left to commit", "muted"),)
    many = counted(count, "file")
    words = f"{left} of {many} left to commit" if left < count else f"{many} to commit"
    return (
        (words if count else "", "muted"),
        (f"{staged} staged" if staged else "nothing staged", "success" if staged else "muted"),
        *(((f"{changes.unkept} not kept", "error"),) if changes.unkept else ()),
    )
