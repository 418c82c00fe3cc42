"""The commit page: which accepted changes the index has, staging them, a message, the commit.

It shows what ``pairing.commit`` says and asks it to act.  A message that was begun stays with
the program until it is committed.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import set_cell_size
from rich.text import Text
from textual import on
from textual.app import ComposeResult

from midstream.actions import Place
from midstream.counting import counted
from midstream.errors import UserError
from midstream.pairing.commit import Changes, FileChange
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.page import PageScreen, fitted
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import SUBJECT, MessageField
from midstream.tui.widgets.row_list import ListRow, Piece, RowList

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession

MOST_SHOWN: Final = 800
"""Lines of one change that are shown."""
MOST_ROWS: Final = 6
"""Rows of the list where the change stands below it."""
LOW: Final = 20
"""Screens with fewer rows show no recent commits there."""
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
    DETAIL = "change"
    CSS_PATH: ClassVar = ["page.tcss", "commit.tcss"]
    BINDINGS: ClassVar = page_bindings(Place.COMMIT)

    changes: Changes | None = None
    recent: Sequence[str] = ()
    """Subjects of the newest commits."""
    refused: tuple[str, str] | None = None

    def compose_body(self) -> ComposeResult:
        yield from super().compose_body()
        yield MessageField(
            self.palette, self.services.commit_message, "What changed, in one line; then why."
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._look()

    def _offer(self, instructions: Sequence[str]) -> None:
        """Begin the message with instructions where the first can be a subject.

        The others are part of it where they fit, else they stand below it.
        """
        first, *others = [" ".join(words.split()) for words in instructions] or [""]
        if first and len(first) <= SUBJECT:
            field = self.message.field
            one = "; ".join((first, *others))
            text = one if len(one) <= SUBJECT else "\n".join((first, "", *others))
            field.text = text[:1].upper() + text[1:]
            field.move_cursor(field.document.end)
            self.message.show_note("begun with what you asked for")

    @property
    def message(self) -> MessageField:
        return self.query_one(MessageField)

    @property
    def file(self) -> FileChange | None:
        """The file under the cursor."""
        value = self.list.value
        files = () if self.changes is None else self.changes.files
        return next((file for file in files if file.path == value), None)

    def _look(self) -> None:
        async def work() -> None:
            await self._read()
            files = () if self.changes is None else self.changes.files
            own = any(not file.earlier and file.state != "committed" for file in files)
            if own and self.session is not None and not self.services.commit_message:
                self._offer(self.session.commit.asked(self.session.turns))
            if self.session is not None:
                self.recent = await self.session.commit.recent()
                self.show_all()

        self.work.run(work)

    async def _read(self) -> None:
        if self.session is not None:
            self.changes = await self.session.commit.look()
            self.show_all()

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        changes = self.changes
        if changes is None:
            self.title_row.show(("reading the index", "muted"))
            return
        branch: Piece = (f"on {changes.branch}" if changes.branch else "", "foreground")
        self.title_row.show(branch, *_summary(changes))
        rows = [self._row(file) for file in changes.files if not file.earlier]
        if earlier := [self._row(file) for file in changes.files if file.earlier]:
            rows += [ListRow(None, ((" Accepted in an earlier session", "muted"),)), *earlier]
        if changes.others:
            rows.append(ListRow(None, ((" Staged by you, goes in too", "muted"),)))
            rows += [self._other_row(path) for path in changes.others]
        narrow = self.has_class("-narrow")
        if rows and self.recent and narrow and len(rows) < MOST_ROWS and self.size.height >= LOW:
            words = self.glyphs.separator.join(f" {visible(s)} " for s in self.recent).strip()
            rows.append(ListRow(None, ((" Lately  ", "muted"), (words, "muted"))))
        self.list.styles.height = min(max(len(rows), 1), MOST_ROWS) if narrow else "1fr"
        if rows and self.recent and not narrow:
            rows += [ListRow(None, ()), ListRow(None, ((" Lately committed here", "muted"),))]
            rows += [ListRow(None, ((f"  {visible(s)}", "muted"),)) for s in self.recent]
        self.list.show(rows)
        self.show_detail()
        self._show_trouble(changes)
        self.show_keys()

    def _row(self, file: FileChange) -> ListRow:
        words, role = _WORDS[file.state]
        box = {"staged": "x", "committed": "x", "partly": "-", "conflict": "!"}.get(file.state, " ")
        counts: list[Piece] = [
            (f"  +{file.added}", "success" if file.added else "muted"),
            (f" -{file.deleted}", "error" if file.deleted else "muted"),
        ]
        state: Piece = (f"  {words:>13}", role)
        mark = "muted" if file.state == "committed" else role
        name: Piece = visible(file.path), "muted" if file.state == "committed" else "foreground"
        return ListRow(file.path, ((f" [{box}] ", mark), name), (*counts, state))

    def _other_row(self, path: str) -> ListRow:
        return ListRow(f"\0{path}", ((" [x] ", "success"), (visible(path), "foreground")))

    def _show_trouble(self, changes: Changes) -> None:
        if changes.trouble:
            self.notice.show("warning", changes.trouble)
        elif not changes.files and not changes.others and not self.notice.is_shown:
            key = self.services.key_for("hunk.accept")
            self.notice.show(
                "info",
                f"Nothing was accepted in this session, so there is nothing to commit; "
                f"{key} accepts the hunk under the cursor.",
            )

    def show_detail(self) -> None:
        """The change of the file under the cursor, or why git refused the commit."""
        file, palette = self.file, self.palette
        text = Text(no_wrap=True, overflow="crop")
        if self.refused is not None:
            self._tell_refusal(text, *self.refused)
        elif file is None:
            if (self.list.value or "").startswith("\0"):
                text.append("You staged this yourself; a commit takes it along.", "")
                text.stylize(palette.style("muted"))
                text.no_wrap, text.overflow = False, "fold"
        else:
            text.append(f"{visible(file.path)}\n", palette.style("accent", bold=True))
            if file.earlier:
                text.append("accepted in an earlier session\n", palette.style("muted"))
            if file.new:
                lines = counted(file.added, "line")
                text.append(f"new file, {lines}\n", palette.style("muted"))
            if file.trouble:
                text.append(f"{visible(file.trouble)}\n", palette.style("error"))
            if file.own or file.trouble:
                key = self.services.key_for("commit.whole")
                lines = counted(file.own, "line") if file.own else "lines"
                stay = f"{lines} of your own stay out; " if file.own else ""
                text.append(f"{stay}{key} takes the whole file\n", palette.style("warning"))
            if file.undecided:
                many = counted(file.undecided, "hunk")
                they = "waits" if file.undecided == 1 else "wait"
                text.append(f"{many} still {they} for a decision\n", palette.style("warning"))
            self._tell_diff(text, file.diff)
        self.detail.show(text)

    def _tell_diff(self, text: Text, lines: tuple[str, ...]) -> None:
        palette = self.palette
        width = self.detail.columns
        for line in lines[:MOST_SHOWN]:
            shown = visible(line, ascii_only=self.glyphs.ellipsis.isascii())
            shown = fitted(shown, width, self.glyphs)
            if line.startswith("@@"):
                text.append(f"\n{shown}\n", palette.style("muted"))
            elif line[:1] in "+-":
                side = "added" if line.startswith("+") else "deleted"
                text.append(shown[:1], palette.style(f"{side}_sign", side))
                body = shown[1:]
                text.append(set_cell_size(body, width - 1), palette.style("foreground", side))
                text.append("\n")
            else:
                text.append(f"{shown}\n", palette.style("muted"))
        if len(lines) > MOST_SHOWN:
            text.append(f"{len(lines) - MOST_SHOWN:,} more lines\n", palette.style("muted"))

    def _tell_refusal(self, text: Text, sentence: str, output: str) -> None:
        palette = self.palette
        text.no_wrap, text.overflow = False, "fold"
        text.append("What git and your hooks wrote\n\n", palette.style("error", bold=True))
        for line in output.splitlines() or [sentence]:
            text.append(f"{visible(line)}\n", palette.style("foreground"))

    def hidden_hints(self) -> frozenset[str]:
        changes, hidden = self.changes, {"commit.files"}
        if changes is None or changes.trouble or not (changes.files or changes.others):
            return frozenset(
                {"commit.stage", "commit.stage_all", "commit.whole"}
                | {"commit.commit", "commit.commit.anywhere"}
                | hidden
            )
        if self.file is None or self.file.state in ("committed", "conflict"):
            hidden.add("commit.stage")
        if self.file is None or not (self.file.own or self.file.trouble):
            hidden.add("commit.whole")
        if not any(file.state in ("unstaged", "partly") for file in changes.files):
            hidden.add("commit.stage_all")
        if not changes.staged:
            hidden |= {"commit.commit", "commit.commit.anywhere"}
        return frozenset(hidden)

    def hint_words(self) -> dict[str, str]:
        staged = self.file is not None and self.file.state == "staged"
        return {"commit.stage": "unstage"} if staged else {}

    @on(RowList.Highlighted)
    def _looked_on(self) -> None:
        self.refused = None

    @on(MessageField.Edited)
    def _edited(self, event: MessageField.Edited) -> None:
        event.stop()
        self.services.commit_message = event.text

    # doing

    def action_message(self) -> None:
        self.set_focus(self.message.field)

    def action_files(self) -> None:
        self.set_focus(self.list)

    @property
    def _usable(self) -> tuple[Changes, PairingSession] | None:
        """The changes and the session, if the index can be changed; says why not otherwise."""
        changes, session = self.changes, self.session
        if changes is None or session is None:
            return None
        if changes.trouble:
            self.notices.say("warning", changes.trouble)
            return None
        return changes, session

    def action_stage(self) -> None:
        file, usable = self.file, self._usable
        if file is None or usable is None:
            return
        if file.trouble:
            self.notices.say("error", file.trouble)
        elif file.state == "committed":
            self.notices.say("info", f"What was accepted in {file.path} is committed already.")
        else:
            committing = usable[1].commit
            back = file.state == "staged"
            self._do((committing.unstage if back else committing.stage)(file.path))

    def _do(self, step: Coroutine[object, object, None]) -> None:
        """Change the index and look at it again."""

        async def work() -> None:
            await step
            self.notices.clear()
            await self._read()

        self.work.run(work)

    def action_whole(self) -> None:
        file, usable = self.file, self._usable
        if file is None or usable is None:
            return
        if not (file.own or file.trouble):
            self.notices.say("info", f"{file.path} has no lines of yours beside what was accepted.")
        else:
            self._do(usable[1].commit.stage_whole(file.path))

    def action_stage_all(self) -> None:
        if (usable := self._usable) is None:
            return
        changes, session = usable
        paths = [f.path for f in changes.files if f.state in ("unstaged", "partly")]
        if not paths:
            self.notices.say("info", "Everything that was accepted is staged or committed already.")
            return
        self._do(session.commit.stage(*paths))

    def action_commit(self) -> None:
        if (usable := self._usable) is None:
            return
        changes, session = usable
        if not changes.staged:
            one, every = map(self.services.key_for, ("commit.stage", "commit.stage_all"))
            self.notices.say(
                "warning", f"Nothing is staged; {one} stages a file, {every} all of them."
            )
            return
        text = self.message.text
        if not text.strip():
            self.action_message()
            self.notices.say("info", "Write one line that says what changed.")
            return

        async def work() -> None:
            self.refused = None
            self.notices.say("info", "Committing; your hooks run.")
            try:
                commit = await session.commit.commit(
                    text, trailer=self.services.settings.commit_trailer
                )
            except UserError as error:
                self._refuse(error)
                await self._read()
                return
            self.services.commit_message = ""
            await session.external.refresh()
            where = f" on {changes.branch}" if changes.branch else ""
            subject = text.strip().splitlines()[0]
            self.dismiss(f"Committed {commit[:8]}{where}: {subject}")

        self.work.run(work)

    def _refuse(self, error: UserError) -> None:
        """Show why, whole: a hook's last line alone says little."""
        output = str(getattr(error, "output", "")).strip()
        if len(output.splitlines()) > 1:
            self.refused = str(error), output
        self.notices.say("error", str(error))
        self.show_detail()
        self.detail.rewind()


def _summary(changes: Changes) -> tuple[Piece, ...]:
    """How much there is to commit, for the title."""
    count, staged = len(changes.files), changes.staged
    left = sum(file.state != "committed" for file in changes.files)
    if count and not left and not staged:
        return (("nothing left to commit", "muted"),)
    many = counted(count, "file")
    words = f"{left} of {many} left to commit" if left < count else f"{many} with accepted changes"
    return (
        (words, "muted"),
        (f"{staged} staged" if staged else "nothing staged", "success" if staged else "muted"),
    )
