"""The rows around the code: status, file, files, examples, the welcome, and useful keys.

They are read from the session again whenever something may have changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from midstream.actions import ACTIONS, BY_ID, WRITING
from midstream.code.languages import spelled
from midstream.code.lexing import language_of
from midstream.counting import counted
from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.activity import Activity
from midstream.pairing.models.disclosures import about_built_in
from midstream.pairing.models.simulating import pacing_words
from midstream.pairing.status import SessionState
from midstream.resources import tilde
from midstream.tui.keymap import first_key
from midstream.tui.review.controller import Controller
from midstream.tui.review.panes import RAIL_WIDTH
from midstream.tui.widgets.file_bar import FileFacts
from midstream.tui.widgets.key_bar import KeyHint, answer_hints
from midstream.tui.widgets.rail import MARKS, FileEntry
from midstream.tui.widgets.status_row import StatusFacts
from midstream.tui.widgets.welcome import Example, TourWords, WelcomePart, WelcomeRow
from midstream.words import in_review

if TYPE_CHECKING:
    from midstream.pairing.session import PairingSession
    from midstream.tui.diff.view import FileView, MatchFinder
    from midstream.tui.review.state import ReviewState


class Moment(Struct, frozen=True):
    """The facts the choice depends on.

    Attributes:
        in_conversation: The keys go to the conversation.
        tool: What Enter does with the tool under its cursor, ``""`` for nothing.
        folder: What Enter does with the folder under the rail's cursor, ``""`` at a file.
        background: The running turn is the session's own; an instruction takes its place.
        hunk: State of the hunk under the cursor.
        external: Another program wrote that hunk, so it is kept or put back; where the cursor is on
            none, those of the file.
        read_only: Nothing is put back or written: a range of commits is looked at.
        answers: The model answers questions.
        flagged: There is a reason to look at it closely.
        undecided: Undecided hunks in all files.
        alike: Undecided hunks that are the same as the one under the cursor.
        accepted: There is something to commit.
        together: Several hunks of this file are undecided, and some may be accepted together.
        partly: Some of the marked lines belong to an undecided hunk.
        cut: The row under the cursor does not fit.
        choosing: A list of mentions is open.
        pasted: A chip stands for a pasted block.
        failed: Edits of the last answer did not match.
        asking: Answers of the open question; in a text that was begun their numbers are text.
        agent: A coding agent is at work.
        answering: The model answers a question.
        plan: There is a plan.
        planned: A step of it can be carried out.
        tour: What the tour says.
    """

    composing: bool = False
    in_rail: bool = False
    in_conversation: bool = False
    tool: str = ""
    folder: str = ""
    typed: bool = False
    running: bool = False
    background: bool = False
    following: bool = False
    file: bool = False
    hunk: HunkState | None = None
    external: bool = False
    read_only: bool = False
    answers: bool = False
    flagged: bool = False
    undecided: int = 0
    alike: int = 0
    together: bool = False
    accepted: bool = False
    undoable: bool = False
    marked: bool = False
    partly: bool = False
    searching: bool = False
    recallable: bool = False
    rail: bool = False
    cut: bool = False
    choosing: bool = False
    pasted: bool = False
    failed: bool = False
    asking: int = 0
    agent: bool = False
    answering: bool = False
    plan: bool = False
    planned: bool = False
    tour: TourWords = field(default_factory=TourWords)


def _matches(finder: MatchFinder, row: int) -> str:
    """Which matches of a search stand in a row, and how many there are."""
    numbers = finder.numbers(row)
    if not finder.count:
        return f'no "{finder.text}"'
    if not numbers:
        return counted(finder.count, "match", "matches")
    if len(numbers) == 1:
        return f"match {numbers[0]} of {finder.count}"
    return f"matches {numbers[0]}-{numbers[-1]} of {finder.count}"


def _size_of(view: FileView) -> str:
    """How long the file of a view is on disk, or why there is none."""
    base = view.proposal.base
    if not base.missing:
        return counted(len(base.lines), "line")
    hunks = [hunk for _, _, hunk in view.places()]
    return "deleted" if hunks and not any(hunk.new for hunk in hunks) else "new file"


def hints(moment: Moment, keys: dict[str, str]) -> tuple[KeyHint, ...]:
    """The hints, most useful first; help is always the last."""
    chosen: list[KeyHint] = []
    if not moment.typed:
        chosen += answer_hints(moment.asking)
    seen: set[str] = set()
    for item in _wanted(moment):
        action_id, _, words = item.partition(":")
        action = BY_ID[action_id]
        if moment.read_only and action_id in WRITING:
            continue
        if keys[action_id] and action_id not in seen:
            seen.add(action_id)
            key = first_key(keys, action_id)
            if moment.choosing and action_id == "composer.recall":
                key = f"{key}/down"
            words = words or action.short
            if moment.read_only and action_id == "compose":  # Only questions can be sent.
                if not moment.answers:
                    continue
                words = "ask"
            words = in_review(words) if moment.external else words
            chosen.append(KeyHint(key, words, action.call))
    help_id = "help.anywhere" if moment.composing else "help"
    chosen.append(KeyHint(first_key(keys, help_id), "keys", BY_ID[help_id].call))
    return tuple(chosen)


def _wanted(moment: Moment) -> Iterator[str]:
    if moment.tour.place and not moment.typed:
        if moment.tour.enter:
            yield f"{'composer.send' if moment.composing else 'choose'}:{moment.tour.enter}"
        if not (moment.composing or moment.tour.last):
            yield "close:leave the tour"
    if moment.composing:
        yield from _composing(moment)
        return
    if moment.asking:
        yield "close:leave it"
    if moment.in_rail:
        yield "choose:open" if not moment.folder else f"choose:{moment.folder}"
        yield "row.left:fold"
        yield "row.right:unfold"
        yield "open:find file"
        yield "pane.next"
        yield "close:back"
        return
    if moment.in_conversation:
        if moment.tool:
            yield f"choose:{moment.tool}"
        yield "row.down:next tool"
        yield "row.up:tool before"
        yield "page.down:page down"
        yield "pane.next"
        yield "close:back"
        return
    if moment.hunk is HunkState.SETTLED and not moment.marked:
        yield "hunk.accept"
        yield "hunk.reject"
        if moment.flagged:
            yield "failures"
    if moment.alike > 1 and not moment.marked:
        yield f"group.accept:accept {moment.alike + 1} alike"
    if moment.hunk is HunkState.HELD:
        yield "hunk.release:let me keep it" if moment.external else "hunk.release"
        yield "hunk.reject"
        yield "guard.file"
        if moment.undoable:
            yield "decision.undo"
        yield "failures"
    if moment.hunk is HunkState.CONFLICT:
        yield "hunk.reject:dismiss"
    if moment.hunk is HunkState.REJECTED and not moment.marked:
        yield "fold:fold"
        yield "hunk.accept:accept instead"
    if moment.hunk is HunkState.ACCEPTED and not moment.marked:
        yield "hunk.reject:reject instead"
    if moment.partly:
        yield "hunk.accept:accept lines"
        yield "hunk.reject:reject lines"
        yield "hunk.split"
    if moment.undecided and not moment.marked:
        yield (
            "hunk.next_undecided:next hunk"
            if moment.hunk is not HunkState.SETTLED
            else "hunk.next_undecided"
        )
    if moment.running:
        yield "model.stop"
        yield "compose" if moment.background else "compose:redirect"
        if not moment.following:
            yield "follow"
    if moment.agent or (moment.answering and not moment.running):
        yield "model.stop"
    if moment.failed and not moment.marked:
        yield "failures:what failed"
    if moment.together and not moment.marked:
        yield "hunk.accept_rest"
    if moment.undoable:
        yield "decision.undo"
    if moment.accepted and not moment.undecided and not moment.running:
        yield "commit"
    if moment.marked:
        yield "compose:instruct"
        yield "copy"
        yield "close:unmark"
    elif not moment.running:
        if moment.planned:
            yield "plan.next"
        yield "compose"
        if moment.plan:
            yield "plan.edit"
    if moment.hunk is not None and not moment.marked:
        yield from (action.id for action in ACTIONS if moment.hunk in action.offered)
    if moment.cut:
        yield "row.right:rest of line"
    if moment.searching:
        yield "search.next"
        yield "search.previous"
    if moment.file and not moment.marked and not moment.running:
        yield "select"
    yield "open"
    yield "palette"
    if not moment.marked:
        if moment.accepted and (moment.undecided or moment.running):
            yield "commit"
        yield "models"
        yield "settings"
        yield "sessions"


def _composing(moment: Moment) -> Iterator[str]:
    if moment.choosing:
        yield "pane.next:take"
        yield "composer.recall:choose"
        yield "composer.leave:close the list"
        return
    if moment.running:
        yield "composer.send" if moment.background else "composer.send:redirect now"
        yield "composer.queue"
        yield "model.stop"
    elif moment.typed:
        yield "composer.send:queue" if moment.agent else "composer.send"
    if moment.agent or (moment.answering and not moment.running):
        yield "model.stop"
    if moment.recallable and not moment.typed:
        yield "composer.recall"
    if moment.rail and not moment.file and not moment.typed:
        yield "pane.next:files"
    if moment.pasted:
        yield "composer.expand"
    yield "composer.newline"
    if moment.asking and moment.typed:
        yield "composer.leave:answer by number"
    else:
        yield "composer.leave:back to code" if moment.file else "composer.leave"
    yield "palette.anywhere"


class Status(Controller):
    """Shows facts; changes nothing but what is on screen."""

    def refresh(self) -> None:
        panes = self._panes
        if not panes.screen.is_mounted or not self._services.is_running:
            return
        panes.status.show(status_facts(self._state))
        self._show_file()
        self._show_rail()
        self._show_examples()
        self._show_introduction()
        self.show_keys()
        panes.ruler.show(self._state.view, panes.pane)
        if not self._state.path:
            self._show_welcome()

    def _show_file(self) -> None:
        state, path = self._state, self._state.path
        if not path:
            self._panes.file.show(FileFacts())
            return
        session, view = state.session, state.view
        pane, written = self._panes.pane, state.written_path
        here, waiting = session.hunks.counts(path), state.waiting_by_path
        # Those whose place a later answer took are not among the hunks that are numbered.
        accepted = [h for _, _, h in view.places() if h.state is HunkState.ACCEPTED]
        kept = sum(hunk.external for hunk in accepted)
        self._panes.file.show(
            FileFacts(
                covered=RAIL_WIDTH if self._panes.rail_over_code else 0,
                path=path,
                language=language_of(path),
                size=_size_of(view),
                undecided=here.undecided,
                accepted=len(accepted) - kept,
                kept=kept,
                rejected=here.rejected - here.put_back,
                put_back=here.put_back,
                conflicts=here.conflicts,
                held=here.held,
                writing_in=path if written and state.heading else written,
                elsewhere=sum(waiting.values()) - waiting.get(path, 0),
                following=pane.following or state.heading,
                new_rows=pane.new_rows,
                position=self._position(),
                follow_key=self._services.key_for("follow"),
            )
        )

    def _position(self) -> str:
        pane, finder = self._panes.pane, self._state.finder
        if finder is not None:
            return _matches(finder, pane.cursor)
        rows = pane.selection_rows
        if rows is not None:
            return f"{counted(rows[1] - rows[0], 'line')} marked"
        words = [f"from column {pane.strips.left + 1}"] if pane.strips.left else []
        hunk = pane.hunk
        if hunk is not None:
            ids = [other.id for _, _, other in self._state.view.places()]
            if len(ids) > 1:
                words.append(f"hunk {ids.index(hunk.id) + 1} of {len(ids)}")
        return "   ".join(words)

    def _show_rail(self) -> None:
        state, session = self._state, self._state.opened
        if session is None or not self._panes.rail.display:
            return
        written = state.written_path
        counts = session.hunks.counts
        writes = session.status.state is SessionState.STREAMING
        entries = [
            FileEntry(
                path, counts(path), writing=writes and written == path, current=path == state.path
            )
            for path in session.files
        ]
        repo = session.external.repo
        self._panes.rail.show_files(entries, state.files, None if repo is None else repo.marks)

    def _show_examples(self) -> None:
        state, session, demo = self._state, self._state.opened, self._services.demo
        widget = self._panes.suggestions
        small = self._panes.screen.has_class("-small")
        compact = small or bool(state.path) or bool(session and session.turns)
        busy = state.running or bool(state.waiting_by_path) or bool(session and session.agent.busy)
        suggestions = state.suggested if demo is None else demo.suggestions
        # Those for one's own code belong to the welcome; the demo is there to try them.
        busy = busy or (demo is None and bool(state.path)) or bool(self._panes.tour.words.place)
        if state.examples_hidden or self._notices.asking or busy:
            widget.show((), hint="", compact=compact)
            return
        examples = [
            Example(s.title, s.instruction, s.path, s.instruction in state.tried)
            for s in suggestions
        ]
        hint = "click, or press its number in an empty line"
        if not self._panes.composing:
            hint = f"press its number; {self._services.key_for('suggestions')} hides this"
        widget.show(examples, hint=hint, compact=compact)

    def _show_introduction(self) -> None:
        session, key_for = self._state.opened, self._services.key_for
        if session is None or not session.introduction.due:
            self._panes.introduction.show("")
            return
        models = key_for("models")
        if self._panes.composing:
            said = about_built_in(f"{key_for('composer.leave')}, {models} sets up")
        else:
            said = about_built_in(f"{models} sets up")
            said = f"{said.removesuffix('.')} ({key_for('close')} hides this)."
        self._panes.introduction.show(said)

    def show_keys(self) -> None:
        """Show the keys that do something now."""
        panes = self._panes
        if self._notices.is_alone:
            panes.keys.show(self._notices.hints)
            return
        if (entry := panes.entry) is not None:
            panes.keys.show(entry.hints)
            return
        state, session = self._state, self._state.opened
        moment = Moment(
            running=state.running,
            file=bool(state.path),
            asking=len(self._notices.choices),
            tour=panes.tour.words,
        )
        if session is not None:
            moment = replace(
                moment,
                background=session.turns.in_background,
                agent=session.agent.busy,
                answering=session.chat.busy,
            )
        moment = self._composing(moment) if panes.composing else self._reviewing(moment)
        panes.keys.show(hints(moment, self._services.keys))

    def _composing(self, moment: Moment) -> Moment:
        """What the composer's keys depend on, too; cheap, since every character needs it."""
        composer = self._panes.composer
        text = composer.text
        return replace(
            moment,
            composing=True,
            typed=bool(text.strip()),
            recallable=bool(composer.history),
            rail=self._panes.rail.display,
            choosing=composer.choosing,
            pasted=text != composer.field.text,
        )

    def _reviewing(self, moment: Moment) -> Moment:
        """What the keys of the code depend on, too."""
        state, pane, session = self._state, self._panes.pane, self._state.opened
        rail, hunk = self._panes.rail, pane.hunk
        conversation = self._panes.conversation
        tool = conversation.cursor if conversation is not None else None
        moment = replace(
            moment,
            in_rail=rail.has_focus,
            in_conversation=self._panes.conversing,
            tool="" if tool is None else tool.opens,
            folder=rail.folder and ("fold" if rail.is_unfolded(rail.folder) else "unfold"),
            following=pane.following,
            hunk=None if hunk is None else hunk.state,
            undecided=sum(state.waiting_by_path.values()),
            marked=pane.mark is not None,
            partly=any(part.hunk.state is HunkState.SETTLED for part in pane.marked_parts),
            searching=state.finder is not None,
            cut=pane.cut,
            failed=bool(state.failed_edits),
        )
        if session is None:
            return moment
        here = session.hunks.undecided(state.path)
        return replace(
            moment,
            alike=0 if hunk is None else session.walk.alike(hunk),
            external=self._in_review(session, hunk),
            read_only=state.read_only,
            answers=not session.server.model_info.is_edit_model,
            flagged=hunk is not None and bool(session.reason(hunk)),
            together=len(here) > 1 and session.attention.any_together(here),
            accepted=session.hunks.counts().accepted > 0,
            undoable=session.hunks.undoable,
            plan=bool(session.chat.steps),
            planned=bool(session.chat.steps.next),
        )

    def _in_review(self, session: PairingSession, hunk: Hunk | None) -> bool:
        """Whether what the keys decide is kept or put back: the hunk, or all of the file."""
        if hunk is not None:
            return hunk.external
        here = session.hunks.counts(self._state.path)
        return here.only_external if here.live else session.only_reviews

    def _show_welcome(self) -> None:
        state, key_for = self._state, self._services.key_for
        files = counted(len(state.files), "file") if state.files else "no files yet"
        if not state.listed:
            files = "reading the folder"
        keys = (
            (key_for("composer.send"), "sends what you write below"),
            (key_for("composer.leave"), "leaves the text field for these keys:"),
        )
        if not self._panes.composing:
            keys = ((key_for("compose"), "describe the change you want"),)
        keys += ((key_for("open"), "open a file by name"), (key_for("help"), "every key"))
        separator = self._services.glyphs.separator
        self._panes.welcome.show(
            f"{tilde(self._services.users_folder)}  {separator}  {files}",
            keys,
            tuple(self._welcome_notes()),
            tuple(self._welcome_parts()),
        )

    def _welcome_notes(self) -> Iterator[str]:
        """Sentences about where we are and what the model can do."""
        session, key_for = self._state.opened, self._services.key_for
        if self._services.demo is not None:
            yield "The example project is a temporary copy, removed when you leave."
            if self._services.settings.pace:
                yield (
                    "The model writes slowly, so that you can decide and redirect while it "
                    f"writes; {key_for('pace')} switches to full speed."
                )
        if session is None:
            return
        if session.workspace.read_only:
            yield "Keeping a hunk marks it as read; nothing on disk changes."
        elif session.review.on:
            yield "What other programs write here becomes hunks, to keep or to put back."
        if session.agent.on or session.status.state is SessionState.STARTING:
            return
        name, info = session.server.model_name, session.server.model_info
        if info.is_edit_model:
            subject = session.server.name_or_the_model
            where = f", in {spelled(info.languages)}" if info.languages else ""
            if not session.introduction.due:  # which says so, too
                yield f"{subject} edits one function at a time{where}."
                subject = "It"
            yield f"{subject} reads only the lines it is to change and your instruction."
        elif name:
            yield f"{name} takes requests in your own words, in any file and language."

    def _welcome_parts(self) -> Iterator[WelcomePart]:
        """What waits here, what differs from the last commit, and what was done lately."""
        state, session = self._state, self._state.opened
        if session is None:
            return
        rows = tuple(
            WelcomeRow(
                ((counted(count, "hunk"), "warning"), (f"  {path}", "foreground")), path=path
            )
            for path, count in state.waiting_by_path.items()
        )
        yield WelcomePart("Waiting for a decision", rows)
        repo = session.external.repo
        changed = () if repo is None else repo.marks.items()
        rows = tuple(
            WelcomeRow(((mark, MARKS[mark]), (f"  {path}", "foreground")), path=path)
            for path, mark in changed
            if path and mark != "D" and not path.endswith("/")
        )
        yield WelcomePart("Changed since the last commit", rows)
        call = BY_ID["sessions"].call
        rows = tuple(
            WelcomeRow(
                (
                    (f"{recent.when}  ", "muted"),
                    (recent.asked, "foreground"),
                    (f"  {recent.undecided} to decide" if recent.undecided else "", "warning"),
                ),
                call=call,
            )
            for recent in state.recent
        )
        yield WelcomePart("Earlier here", rows, self._services.key_for("sessions"))


def status_facts(state: ReviewState) -> StatusFacts:
    """What the status row shows."""
    if (session := state.opened) is None:
        return StatusFacts()
    meter, repo = session.status.meter, session.external.repo
    branch = ""
    if repo is not None:
        branch = f"{repo.head[:8]} detached" if repo.detached else repo.branch
    agent, doing = session.agent, state.doing
    model = session.server.called
    if agent.on:
        model = agent.title
    writing = doing is Activity.WRITING
    return StatusFacts(
        model=model,
        doing=doing,
        rate=(meter.tokens_per_second or meter.turn_rate) if writing else None,
        estimated=meter.estimated,
        history=tuple(meter.history),
        ttft_s=meter.ttft_s,
        tokens=meter.turn_tokens,
        waited_s=session.status.clock.seconds(doing),
        reading=str(meter.reading or ""),
        pacing=pacing_words(session.server.model_info.pacing, meter.cost),
        effort="" if session.turns.effort == "auto" else session.turns.effort,
        trying=session.turns.trying,
        queued=len(session.turns.queued),
        continuous=session.background.continuous,
        dollars=meter.total.dollars,
        branch=branch,
        begun="" if repo is None else repo.begun,
        dirty=0 if repo is None else repo.dirty + repo.untracked,
        watching=session.external.watching,
        reviewing=session.review.on,
        range=session.workspace.snapshot_of,
        waiting_agent=session.gate.waiting,
        guard=session.guard.light(state.path).words,
    )
