"""What the rows around the code show, read from the session again whenever something changed."""

from __future__ import annotations

from textual import on

from midstream.edits.hunks import HunkState
from midstream.edits.lexing import language_of
from midstream.pairing.simulating import pacing_words
from midstream.resources import tilde
from midstream.tui.screens.hints import Moment, hints
from midstream.tui.screens.pages import PageActions
from midstream.tui.screens.reason import HunkQuestion
from midstream.tui.screens.search import SearchBar
from midstream.tui.widgets.file_bar import FileBar, FileFacts
from midstream.tui.widgets.key_bar import KeyBar
from midstream.tui.widgets.line_api import TextLine
from midstream.tui.widgets.rail import FileEntry
from midstream.tui.widgets.ruler import Ruler
from midstream.tui.widgets.status_row import StatusFacts, StatusRow, rate_of
from midstream.tui.widgets.suggestions import Example, Suggestions
from midstream.tui.widgets.welcome import Welcome


class Facts(PageActions):
    """Shows facts; changes nothing but what is on screen."""

    _shown_turn = 0
    """The newest turn to whose place the view has gone, or was left where it is."""

    _examples_hidden = False
    _tried: frozenset[str] = frozenset()

    @property
    def heading(self) -> bool:
        """Whether the view is on its way to where a turn writes."""
        turn = None if self.session is None else self.session.turn
        return turn is not None and not turn.background and turn.id > self._shown_turn

    def refresh_facts(self) -> None:
        """Read the facts of status row, file bar, ruler, rail, key bar and examples again."""
        if not self.is_mounted or not self.program.is_running:
            return
        self._show_status()
        self._show_file()
        self._show_rail()
        self._show_examples()
        self.show_keys()
        view = self.view
        self.query_one(Ruler).show(view, self.pane.top, self.pane.bottom - self.pane.top)
        if view is None:
            self._show_welcome()

    def _show_status(self) -> None:
        session, row = self.session, self.query_one(StatusRow)
        if session is None:
            row.show(StatusFacts())
            return
        meter, repo = session.meter, session.repo
        row.show(
            StatusFacts(
                model=session.model_name,
                state=session.state,
                rate=rate_of(meter, session.state),
                history=tuple(meter.history),
                ttft_s=meter.ttft_s,
                tokens=meter.turn_tokens,
                pacing=pacing_words(session.model_info.pacing, meter.cost),
                effort="" if session.effort == "auto" else session.effort,
                trying=session.trying,
                queued=len(session.queued),
                continuous=session.errands.continuous,
                dollars=meter.total.dollars,
                branch=""
                if repo is None
                else (f"{repo.head[:8]} detached" if repo.detached else repo.branch),
                begun="" if repo is None else repo.begun,
                dirty=0 if repo is None else repo.dirty + repo.untracked,
                watching=str(getattr(session, "watching", "") or ""),
                guard=session.guard.light(self.path).words,
            )
        )

    @on(TextLine.Pressed)
    async def _pressed_fact(self, event: TextLine.Pressed) -> None:
        await self.run_action(f"screen.{event.call}")

    def _show_file(self) -> None:
        session, view = self.session, self.view
        bar = self.query_one(FileBar)
        if session is None or view is None:
            bar.show(FileFacts())
            return
        pane, written, path = self.pane, self.written_path, self.path
        # Counted in one pass: in a long answer there are hundreds, and nobody asks for their order.
        # What a later answer went over is accepted all the same.
        states = [
            hunk.state
            for hunk in session.hunks
            if hunk.path == path and (hunk.live or hunk.state is HunkState.ACCEPTED)
        ]
        waiting = sum(
            hunk.state is HunkState.SETTLED and hunk.path != path and hunk.live
            for hunk in session.hunks
        )
        bar.show(
            FileFacts(
                path=path,
                language=language_of(path),
                lines=len(view.proposal.base.lines),
                undecided=states.count(HunkState.SETTLED),
                accepted=states.count(HunkState.ACCEPTED),
                rejected=states.count(HunkState.REJECTED),
                conflicts=states.count(HunkState.CONFLICT),
                quarantined=states.count(HunkState.QUARANTINED),
                writing_in=path if written and self.heading else written,
                elsewhere=waiting,
                following=pane.following or self.heading,
                new_rows=pane.new_rows,
                position=self._position(),
                follow_key=self.program.key_for("follow"),
            )
        )

    def _position(self) -> str:
        if self.finder is not None:
            place, count = self.finder.place(self.pane.cursor)
            return f"match {place} of {count}" if count else f'no "{self.finder.text}"'
        rows = self.pane.selection_rows
        if rows is not None:
            count = rows[1] - rows[0]
            return f"{count} line{'s' * (count != 1)} marked"
        hunk, view = self.hunk, self.view
        words = [f"from column {self.pane.left + 1}"] if self.pane.left else []
        if hunk is not None and view is not None:
            ids = [other.id for _, _, other in view.places()]
            if len(ids) > 1:
                words.append(f"hunk {ids.index(hunk.id) + 1} of {len(ids)}")
        return "   ".join(words)

    def _show_rail(self) -> None:
        session = self.session
        if session is None or not self.rail.display:
            return
        written = self.written_path
        counts = {path: [0, 0, 0, 0] for path in session.files}
        for hunk in session.hunks:
            count = counts.get(hunk.path)
            if count is None or not hunk.live:
                continue
            if hunk.state is not HunkState.REJECTED:
                count[0] += hunk.added
                count[1] += hunk.deleted
            count[2] += hunk.state is HunkState.SETTLED
            count[3] += hunk.decided
        entries = [
            FileEntry(path, *count, writing=written == path, current=path == self.path)
            for path, count in counts.items()
        ]
        self.rail.show_files(entries, self.files)

    def _show_examples(self) -> None:
        widget = self.query_one(Suggestions)
        demo = self.demo
        session = self.session
        small = self.has_class("-small") or (session is not None and bool(session.turns))
        busy = self.running or (session is not None and bool(session.hunks.undecided()))
        if demo is None or self._examples_hidden or self.answers or busy:
            widget.show((), hint="", compact=small)
            return
        examples = [
            Example(s.title, s.instruction, s.path, s.instruction in self._tried)
            for s in demo.suggestions
        ]
        composing = self.composer.has_focus_within
        key = self.program.key_for("suggestions")
        hint = (
            "click, or press its number in an empty line"
            if composing
            else f"press its number; {key} hides this"
        )
        widget.show(examples, hint=hint, compact=small)

    def show_keys(self) -> None:
        """Show the keys of the moment."""
        focused = self.focused
        for asking in () if focused is None else focused.ancestors_with_self:
            if isinstance(asking, HunkQuestion):
                self.query_one(KeyBar).show(asking.HINTS)
                return
        if self.query_one(SearchBar).has_focus_within:
            self.query_one(KeyBar).show(SearchBar.HINTS)
            return
        composing = self.composer.has_focus_within
        moment = self._moment_of_writing() if composing else self._moment_of_review()
        self.query_one(KeyBar).show(hints(moment, self.program.keys))

    def _moment_of_writing(self) -> Moment:
        """What the keys of the composer depend on: little, since every character asks for it."""
        composer, session = self.composer, self.session
        text = composer.text
        return Moment(
            composing=True,
            typed=bool(text.strip()),
            running=self.running,
            background=session is not None and session.in_background,
            file=self.view is not None,
            recallable=bool(composer.history),
            rail=self.rail.display,
            choosing=composer.choosing,
            pasted=text != composer.field.text,
        )

    def _moment_of_review(self) -> Moment:
        """What the keys of the code depend on."""
        session, hunk = self.session, self.hunk
        return Moment(
            in_rail=self.rail.has_focus,
            running=self.running,
            background=session is not None and session.in_background,
            following=self.pane.following,
            file=self.view is not None,
            hunk=None if hunk is None else hunk.state,
            undecided=0 if session is None else len(session.hunks.undecided()),
            together=session is not None
            and len(here := session.hunks.undecided(self.path)) > 1
            and session.attention.any_together(here),
            decided=session is not None and any(h.decided for h in session.hunks),
            undoable=session is not None and session.hunks.undoable,
            marked=self.pane.mark is not None,
            partly=any(part.hunk.state is HunkState.SETTLED for part in self.marked_parts),
            searching=self.finder is not None,
            cut=self.pane.cut,
            failed=bool(self.failed_edits),
        )

    def _show_welcome(self) -> None:
        key = self.program.key_for
        root = self.program.root
        many = len(self.files)
        count = f"{many:,} file{'s' * (many != 1)}" if many else "no files yet"
        if not self.listed:
            count = "reading the folder"
        writing = self.composer.has_focus_within
        keys = (
            (key("composer.send"), "sends what you write below"),
            (key("composer.leave"), "out of that line, to the keys:"),
        )
        if not writing:
            keys = ((key("compose"), "write what you want changed"),)
        keys += ((key("open"), "open a file by name"), (key("help"), "every key"))
        note = "The example project is a throw-away copy." if self.demo else ""
        self.query_one(Welcome).show(
            f"{tilde(root)}  {self.program.glyphs.separator}  {count}", keys, note
        )
