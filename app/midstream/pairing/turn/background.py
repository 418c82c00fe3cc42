"""Background tasks: requests that the session makes on its own, one after the other.

There are three kinds: comments with ``AI!`` in saved files, follow-on edits of a saved change
(continuous mode), and "the same elsewhere" for one hunk.  Each is a turn like any other, so its
hunks wait for a decision.  The user comes first: a task begins when no turn runs, and a stop drops
all that wait.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from midstream.code.ai_comments import AiComment, find_comments, without_comments
from midstream.code.syntax import has_syntax, same_language
from midstream.codebase.references import (
    MAX_LISTED,
    Use,
    find_uses,
    renames,
    taken_away,
    with_name,
)
from midstream.codebase.similar_edits import (
    EditPlace,
    Substitution,
    around,
    first_use,
    names_at,
    places,
    renamed_import,
    similar_places,
)
from midstream.edits.documents import NotTextError, SourceText
from midstream.edits.lcs import line_edits, matching_pairs
from midstream.errors import UserError
from midstream.pairing.request.question import Question
from midstream.pairing.status import (
    LARGER_MODEL,
    BackgroundDone,
    FileWritten,
    SessionEvent,
    StopRequested,
)

if TYPE_CHECKING:
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.status import SessionStatus
    from midstream.pairing.turn.turns import Turns

MAX_PLACES = 20
"""Places that one task edits."""
MAX_FILE_BYTES = 1_000_000
"""Larger files are left alone."""
REMEMBERED_FILES = 2_000
"""Files whose text continuous mode keeps, to compare a save with."""


@dataclass(slots=True)
class _BackgroundTask:
    """One instruction and the places it is for.

    Attributes:
        path: The file.
        text: The instruction.
        find: Finds its places in the current lines of the file.
        rewrite: What the lines of a place become, where no model is needed.
        doubt: Why its hunks are flagged, ``""`` if they are not.
        consume: Whether AI comments of the region are removed with it.
        done: Places that are done.
    """

    path: str
    text: str
    find: Callable[[Sequence[str]], Sequence[EditPlace]]
    rewrite: Callable[[Sequence[str], EditPlace], list[str] | None] | None = None
    doubt: str = ""
    consume: bool = False
    done: set[str] = field(default_factory=set[str])


class BackgroundTasks:
    """The queue of background tasks.

    Attributes:
        continuous: Whether a save makes the model propose the follow-on edits.
        comments: Whether ``AI!`` comments in saved files are carried out.
    """

    def __init__(
        self,
        files: OpenFiles,
        server: ServerLink,
        status: SessionStatus,
        turns: Turns,
        keep: Callable[[int], Awaitable[bool]],
        *,
        comments: bool = True,
    ) -> None:
        self.continuous = False
        self.comments = comments
        self._files = files
        self._server = server
        self._status = status
        self._turns = turns
        self._keep = keep
        self._waiting: deque[_BackgroundTask] = deque()
        self._running: asyncio.Task[None] | None = None
        self._started: set[asyncio.Task[None]] = set()
        self._seen: dict[str, Counter[tuple[str, str]]] = {}
        self._texts: dict[str, list[str]] = {}
        status.subscribe(self._hear)

    @property
    def waiting(self) -> int:
        """Tasks that have not ended yet."""
        return len(self._waiting)

    async def set_continuous(self, *, on: bool) -> None:
        """Switch continuous mode, in which every save is compared with the text before it."""
        self.continuous = on
        self._texts = await asyncio.to_thread(self._read_all) if on else {}
        self._status.touch()

    async def close(self) -> None:
        """Drop what waits and end what runs."""
        self._waiting.clear()
        for task in (ended := {*self._started, *({self._running} if self._running else ())}):
            task.cancel()
        if ended:
            await asyncio.wait(ended)

    async def changed(self, paths: Iterable[str]) -> None:
        """Look at files that another program has saved."""
        for path in sorted(paths):
            lines = await asyncio.to_thread(self._read, path)
            if lines is None:
                self._texts.pop(path, None)
                self._seen.pop(path, None)
                continue
            before = self._texts.get(path)
            if self.continuous:
                self._texts[path] = lines
            if self.comments:
                self._take_comments(path, lines)
            if self.continuous and before is not None and has_syntax(path):
                # A search takes seconds, and the next save is not to wait for it.
                self._start(self._follow_on(path, before, lines))

    async def elsewhere(
        self, *hunk_ids: int, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Ask for the change of some hunks of one file in the other places that need it.

        A name is looked for in the whole project and exchanged without the model, which is asked
        only where nothing says what the name belongs to.

        Args:
            hunk_ids: The hunks.
            progress: Is called with the tokens that were looked at, and all that there are.

        Returns:
            The number of files it is asked for in; 0 after a notice that says why.

        Raises:
            SnapshotError: The files are those of a range of commits.
        """
        self._files.workspace.require_writable()
        hunks = [self._files.hunks.get(hunk_id) for hunk_id in hunk_ids]
        path = hunks[0].path
        proposal = self._files[path]
        now = list(proposal.composed().lines)
        written = [hunk.id for hunk in hunks if hunk.base_lines == hunk.new != hunk.old]
        if written:  # by another program: the base has it already
            base = list(proposal.reviewed(without=written).lines)
            places = [(edit.start, edit.stop) for edit in line_edits(base, now)]
            lost = [line for hunk in hunks for line in hunk.old]
            found = [
                wanted
                for wanted in (renames(base, now, path) if has_syntax(path) else [])
                if any(wanted.old in line for line in lost)
            ]
        else:
            base = list(proposal.base.lines)
            places = [(hunk.start, hunk.stop) for hunk in hunks]
            after = list(base)
            for hunk in sorted(hunks, key=lambda each: each.start, reverse=True):
                after[hunk.start : hunk.stop] = hunk.new
            found = renames(base, after, path) if has_syntax(path) else []
            if not found and has_syntax(path):
                # The name that "is still used" may be that of another hunk.
                found = renames(base, now, path)
                places = [(hunk.start, hunk.stop) for hunk in self._files.hunks.for_path(path)]
        mine = around(now, self._written(path, hunks[0].start), path)
        asked = 0
        looked_from: set[tuple[str, tuple[int, int]]] = set()
        for wanted in found:
            spots: list[tuple[int, int] | None] = []
            if wanted.kind != "literal":
                spots += [first_use(base, wanted.old, range(*place), path) for place in places]
            if not any(spots):
                asked += await self._spread(path, now, wanted, besides=mine, asked=True)
                continue
            # The first may be a keyword of another library: `width=self.width`.
            spots += taken_away(base, now, wanted.old, path)
            try:
                for spot in filter(None, dict.fromkeys(spots)):
                    if (wanted.old, spot) in looked_from:
                        continue
                    looked_from.add((wanted.old, spot))
                    if uses := await self._spread_uses(
                        path, base, wanted, spot, asked=True, progress=progress
                    ):
                        asked += uses
                        break
            except UserError as error:
                self._status.warn(str(error))
                return 0
            except asyncio.CancelledError:
                self._status.inform(f"The search for the uses of `{wanted.old}` was stopped.")
                raise
        if not found and self._server.model_info.is_chat and hunks[0].old:
            asked += self._spread_alike(path, now, hunks[0].old, hunks[0].new, besides=mine)
        if asked:
            self._begin()
        elif found or self._server.model_info.is_chat:
            self._status.inform(await self._why_not(path, now, found, mine))
        else:
            self._status.inform(
                "This change is not a plain rename or replacement, which is all that the "
                "built-in model can repeat; a chat model (--endpoint) can repeat others."
            )
        return asked

    async def finished(self) -> None:
        """Wait until no task waits or runs."""
        if self._started:
            await asyncio.wait(self._started)
        if self._running is not None:
            await asyncio.wait({self._running})

    # Finding work

    def _take_comments(self, path: str, lines: Sequence[str]) -> None:
        comments = find_comments(lines, path)
        known = self._seen.get(path, Counter())
        self._seen[path] = Counter((c.kind, c.text) for c in comments)
        for comment in comments:
            key = (comment.kind, comment.text)
            if known[key]:
                known[key] -= 1
            else:
                self._take_comment(path, comment)
        self._begin()

    def _take_comment(self, path: str, comment: AiComment) -> None:
        where = f"{path}:{comment.stop}"
        text = comment.text
        kind = comment.kind
        if kind == "question":
            if not self._server.model_info.is_chat:
                self._status.warn(
                    f"The AI? comment at {where} needs a chat model, and the current model only "
                    f"edits; --endpoint names another.",
                    LARGER_MODEL,
                )
                return
            self._status.inform(f'Asked by a comment at {where}: "{text}"')
            self._start(self._ask(path, comment))
            return

        def find(lines: Sequence[str]) -> list[EditPlace]:
            return [
                _place_of(lines, found, path)
                for found in find_comments(lines, path)
                if (found.kind, found.text) == (kind, comment.text)
            ][:1]

        self._status.inform(f'Asked by a comment at {where}: "{comment.text}"')
        self._waiting.append(_BackgroundTask(path, text, find, consume=True))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._started.add(task)
        task.add_done_callback(self._started.discard)

    async def _ask(self, path: str, comment: AiComment) -> None:
        """Have the question of a comment answered in the conversation."""
        try:
            await self._turns.chat.ask_question(Question(comment.text, path, comment.start))
        except UserError as error:
            self._status.warn(f"{path}: {error}")

    async def _follow_on(self, path: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Queue the edits that a save calls for: uses of a name by reference, literals by text."""
        asked = 0
        for wanted in renames(before, after, path):
            spot = (
                None if wanted.kind == "literal" else _replaced_use(before, after, wanted.old, path)
            )
            if spot is None:
                asked += await self._spread(path, after, wanted, besides=None)
                continue
            try:
                asked += await self._spread_uses(path, before, wanted, spot, asked=False)
            except UserError as error:
                self._status.warn(str(error))
        if asked:
            self._status.inform(
                f"Your change of {path} fits other places too; hunks for them are on their way."
            )
            self._begin()

    async def _spread(
        self,
        path: str,
        lines: Sequence[str],
        wanted: Substitution,
        *,
        besides: EditPlace | None,
        asked: bool = False,
    ) -> int:
        """Queue a task for every file that has a place for a substitution; how many."""
        longest = self._server.model_info.max_region_lines

        def find(now: Sequence[str]) -> list[EditPlace]:
            return places(now, wanted, longest, path)

        others = [p for p in find(lines) if _key(p) != _key(besides)]
        found = [path] if any(self._free(path, p) for p in others) else []
        if _reaches_out(wanted, asked=asked):
            found += await asyncio.to_thread(self._others_with, path, find, wanted.old)
        for other in found:
            task = _BackgroundTask(other, wanted.instruction, find, partial(self._import, wanted))
            if other == path:
                task.done.add(_key(besides))
            self._waiting.append(task)
        return len(found)

    async def _spread_uses(
        self,
        path: str,
        base: Sequence[str],
        wanted: Substitution,
        spot: tuple[int, int],
        *,
        asked: bool,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Queue tasks for every file that uses a renamed name; how many files.

        Args:
            path: The file of the change.
            base: Its lines before the change.
            wanted: The change.
            spot: Line and column of one use that it renames.
            asked: Whether the user has asked for it; only then uncertain uses in other files count.
            progress: See ``elsewhere``.
        """
        workspace = self._files.workspace
        files = await asyncio.to_thread(workspace.files)
        reaches = asked or wanted.kind == "name"  # Of an attribute nothing else is certain enough.
        outside = await asyncio.to_thread(workspace.files_outside, wanted.old) if reaches else []
        found = await find_uses(
            *(workspace.root, [*files, *outside], wanted.old, Use(path, *spot)),
            texts={path: base},
            progress=progress,
        )
        uses = [use for use in found if use.path not in outside]
        if beyond := [use for use in found if use.path in outside and use.certain]:
            self._status.warn(_told_outside(wanted.old, beyond))
        count, covered = 0, list[str]()
        for other in dict.fromkeys([path, *(use.path for use in uses if reaches)]):
            then = base if other == path else await asyncio.to_thread(self._read, other)
            if then is None:
                continue
            sure = [use for use in uses if use.path == other and use.certain]
            may_be = [use for use in uses if use.path == other and not use.certain]
            unsure = may_be if asked or other == path else []
            tasks = [
                self._exchange(other, then, sure, wanted),
                self._doubtful(other, then, unsure, wanted),
            ]
            now = await asyncio.to_thread(self._read, other) or []
            useful = [t for t in tasks if any(self._free(other, p) for p in t.find(now))]
            self._waiting.extend(useful)
            count += bool(useful)
            covered += self._covered(other, then, now, sure, wanted)
        if covered and count:
            lines = ", ".join(covered[:MAX_LISTED])
            more = f" and {len(covered) - MAX_LISTED} more" if len(covered) > MAX_LISTED else ""
            self._status.warn(
                f"`{wanted.old}` remains in {lines}{more}, where hunks are undecided; decide "
                f"those, and ask again."
            )
        return count

    def _covered(
        self,
        path: str,
        then: Sequence[str],
        now: Sequence[str],
        uses: Sequence[Use],
        wanted: Substitution,
    ) -> list[str]:
        """The uses that cannot be exchanged, since an undecided hunk there keeps the old name."""
        moved = dict(matching_pairs(then, now))
        lines = sorted({moved[use.line] for use in uses if use.line in moved})
        word = re.compile(rf"\b{re.escape(wanted.old)}\b")
        found: list[str] = []
        for hunk in self._files.hunks.undecided(path):
            start = self._written(path, hunk.start)
            covered = any(start <= line < start + hunk.stop - hunk.start for line in lines)
            if covered and any(map(word.search, hunk.new)):
                found.append(f"{path}:{start + 1}")
        return found

    def _exchange(
        self, path: str, then: Sequence[str], uses: Sequence[Use], wanted: Substitution
    ) -> _BackgroundTask:
        """The task that gives certain uses in a file the new name."""

        def still(now: Sequence[str]) -> list[Use]:
            moved = dict(matching_pairs(then, now))
            return [replace(use, line=moved[use.line]) for use in uses if use.line in moved]

        def find(now: Sequence[str]) -> list[EditPlace]:
            found: list[EditPlace] = []
            for line in sorted({use.line for use in still(now)}):
                place = EditPlace(line, line + 1, "")
                if not self._free(path, place):
                    continue
                if found and self._free(path, wider := EditPlace(found[-1].start, line + 1, "")):
                    found[-1] = wider
                else:
                    found.append(place)
            return found

        def rewrite(now: Sequence[str], place: EditPlace) -> list[str]:
            return with_name(now, still(now), wanted.old, wanted.new)[place.start : place.stop]

        return _BackgroundTask(path, wanted.instruction, find, rewrite)

    def _doubtful(
        self, path: str, then: Sequence[str], uses: Sequence[Use], wanted: Substitution
    ) -> _BackgroundTask:
        """The task in which the model looks at uses whose definition is not certain.

        Its hunks are flagged.
        """
        lines = ", ".join(f"{path}:{use.line + 1}" for use in uses[:MAX_LISTED])
        doubt = f"It is unclear whether `{wanted.old}` means the same in {lines}. Look closely."
        longest = self._server.model_info.max_region_lines

        def find(now: Sequence[str]) -> list[EditPlace]:
            moved = dict(matching_pairs(then, now))
            lines = [moved[use.line] for use in uses if use.line in moved]
            found = dict.fromkeys(place for line in lines if (place := around(now, line, path)))
            return [p for p in found if longest is None or p.stop - p.start <= longest]

        return _BackgroundTask(path, wanted.instruction, find, doubt=doubt)

    async def _why_not(
        self, path: str, lines: Sequence[str], found: Sequence[Substitution], mine: EditPlace | None
    ) -> str:
        """Why a change is asked for nowhere else."""
        longest = self._server.model_info.max_region_lines
        for wanted in found:

            def find(now: Sequence[str], wanted: Substitution = wanted) -> list[EditPlace]:
                return places(now, wanted, None, path)

            def too_long(
                now: Sequence[str], find: Callable[[Sequence[str]], list[EditPlace]] = find
            ) -> list[EditPlace]:
                return [p for p in find(now) if longest is not None and p.stop - p.start > longest]

            here = [place for place in find(lines) if _key(place) != _key(mine)]
            taken = [place for place in here if not self._free(path, place)]
            if taken:
                return (
                    f"This change is wanted in {_named(taken[0])} as well, where a hunk waits "
                    "already; decide that first."
                )
            names = [_named(place) for place in too_long(lines) if _key(place) != _key(mine)]
            if _reaches_out(wanted, asked=True):
                names += await asyncio.to_thread(self._others_with, path, too_long, wanted.old)
            if names:
                return (
                    f"This change is wanted in {names[0]} as well, which has more than the "
                    f"{longest} lines that this model takes; mark some with v and ask there."
                )
        return "No other place was found that needs this change."

    def _spread_alike(
        self,
        path: str,
        lines: Sequence[str],
        old: Sequence[str],
        new: Sequence[str],
        *,
        besides: EditPlace | None,
    ) -> int:
        longest = self._server.model_info.max_region_lines

        def find(now: Sequence[str]) -> list[EditPlace]:
            return similar_places(now, old, longest, path)

        if not any(_key(place) != _key(besides) for place in find(lines)):
            return 0
        shown = "".join([*(f"-{line}\n" for line in old), *(f"+{line}\n" for line in new)])
        text = f"Make the same change here that was made in another place:\n{shown}"
        task = _BackgroundTask(path, text, find)
        task.done.add(_key(besides))
        self._waiting.append(task)
        return 1

    def _others_with(
        self, path: str, find: Callable[[Sequence[str]], Sequence[EditPlace]], word: str
    ) -> list[str]:
        found: list[str] = []
        for other in self._code_files():
            if other == path or not same_language(path, other) or len(found) >= MAX_PLACES:
                continue
            lines = self._read(other)
            if lines is not None and any(word in line for line in lines) and find(lines):
                found.append(other)
        return found

    # Working

    def _begin(self) -> None:
        if self._waiting and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._work())
        self._status.touch()

    async def _work(self) -> None:
        may_begin = self._turns.background_may_begin
        while self._waiting:
            await may_begin.wait()
            await self._turns.finished()
            if not self._waiting:  # A stop has dropped it.
                return
            if not may_begin.is_set():
                continue
            task = self._waiting[0]
            found = await self._next_place(task)
            if found is None:
                self._finish(task)
                continue
            place, known = found
            task.done.add(_key(place))
            lines = (place.start, place.stop)
            question = Question(
                task.text,
                task.path,
                None,
                lines,
                consume=task.consume,
                background=True,
                known=known,
                doubt=task.doubt,
            )
            try:
                if task.consume:
                    await self._keep_comment(task)
                turn = await self._turns.run_in_background(question)
            except UserError as error:
                if error.code == "turn-running":  # The user was quicker.
                    task.done.discard(_key(place))
                    continue
                self._status.warn(f"{task.path}: {error}")
                self._finish(task)
                continue
            # Ended for the user's sake; a deliberate stop has dropped all tasks.
            if turn.status == "stopped":
                task.done.discard(_key(place))

    async def _keep_comment(self, task: _BackgroundTask) -> None:
        """In a review, keep the hunk that only brings a task's comment, which the answer takes out.

        An answer takes the place of no undecided change of another program, and this one is what
        asks for it.
        """
        for hunk in self._files.hunks.undecided(task.path):
            said = (found.text for found in find_comments(hunk.new, task.path))
            if hunk.external and task.text in said:
                rest = without_comments(hunk.new, task.path)
                if [line.rstrip() for line in rest] == [line.rstrip() for line in hunk.old]:
                    await self._keep(hunk.id)

    def _finish(self, task: _BackgroundTask) -> None:
        if self._waiting and self._waiting[0] is task:
            self._waiting.popleft()
        if self._waiting:
            self._status.touch()
        else:
            self._status.emit(BackgroundDone())

    async def _next_place(self, task: _BackgroundTask) -> tuple[EditPlace, str | None] | None:
        """Where a task goes next, and what its lines will be if that needs no model."""
        if task.rewrite is None and len(task.done) > MAX_PLACES:
            return None
        lines = await asyncio.to_thread(self._read, task.path)
        if lines is None:
            return None
        for place in await asyncio.to_thread(task.find, lines):
            wanted = task.consume or self._free(task.path, place)
            if wanted and _key(place) not in task.done:
                return place, self._known(task, lines, place)
        return None

    def _known(self, task: _BackgroundTask, lines: Sequence[str], place: EditPlace) -> str | None:
        after = None if task.rewrite is None else task.rewrite(lines, place)
        return None if after is None else "".join(f"{line}\n" for line in after)

    def _import(
        self, wanted: Substitution, lines: Sequence[str], place: EditPlace
    ) -> list[str] | None:
        if not self._server.model_info.is_edit_model:
            return None
        return renamed_import(lines[place.start : place.stop], wanted)

    def _free(self, path: str, place: EditPlace) -> bool:
        """Whether no undecided hunk lies there."""
        for hunk in self._files.hunks.undecided(path):
            start = self._written(path, hunk.start)
            if start < place.stop and place.start < max(start + hunk.stop - hunk.start, start + 1):
                return False
        return True

    def _written(self, path: str, line: int) -> int:
        """Where a line of the base is in the file as it is on disk, accepted hunks included."""
        edits = self._files.hunks.accepted_edits(path)
        return line + sum(len(e.lines) - (e.stop - e.start) for e in edits if e.stop <= line)

    # Reading

    def _hear(self, event: SessionEvent) -> None:
        if isinstance(event, FileWritten) and event.path in self._texts:
            # Our own write; the next save is compared with it.
            self._texts[event.path] = list(self._files[event.path].composed().lines)
        elif isinstance(event, StopRequested) and self._waiting:
            dropped = len(self._waiting)
            self._waiting.clear()
            what = "1 background edit was" if dropped == 1 else f"{dropped} background edits were"
            self._status.inform(f"{what} cancelled.")

    def _code_files(self) -> Iterator[str]:
        return filter(has_syntax, self._files.workspace.files())

    def _read_all(self) -> dict[str, list[str]]:
        texts: dict[str, list[str]] = {}
        for path in self._code_files():
            if len(texts) >= REMEMBERED_FILES:
                break
            if (lines := self._read(path)) is not None:
                texts[path] = lines
        return texts

    def _read(self, path: str) -> list[str] | None:
        """The lines of a file, ``None`` if it is no readable text of a decent size (blocking)."""
        try:
            data = self._files.workspace.read(path)
            return list(SourceText.from_bytes(data).lines) if len(data) <= MAX_FILE_BYTES else None
        except (UserError, NotTextError):
            return None


def _reaches_out(wanted: Substitution, *, asked: bool) -> bool:
    """Whether a substitution is looked for in other files.

    An attribute of that name may belong to another class there, so the user must ask for it.
    """
    return not wanted.scope and (wanted.kind == "name" or (asked and wanted.kind == "attribute"))


def _replaced_use(
    before: Sequence[str], after: Sequence[str], name: str, path: str
) -> tuple[int, int] | None:
    """Line and column where a name first stands in the lines that a change replaces."""
    kept = {old for old, _ in matching_pairs(before, after)}
    for spot in names_at(before, name, path):
        if spot.line not in kept:
            return spot.line, spot.column
    return None


def _told_outside(name: str, uses: Sequence[Use]) -> str:
    """What to do about uses of a name in files outside of the folder, which are never written."""
    lines = ", ".join(f"{use.path}:{use.line + 1}" for use in uses[:MAX_LISTED])
    more = f" and {len(uses) - MAX_LISTED} more" if len(uses) > MAX_LISTED else ""
    return (
        f"`{name}` is also used outside of this folder, in {lines}{more}. Change these yourself, "
        "or start Midstream in a folder above both."
    )


def _named(place: EditPlace) -> str:
    return f"`{place.symbol}`" if place.symbol else f"line {place.start + 1}"


def _key(place: EditPlace | None) -> str:
    """Identifies a place within its file; ``""`` for no place."""
    return "" if place is None else place.symbol or f"line {place.start}"


def _place_of(lines: Sequence[str], comment: AiComment, path: str) -> EditPlace:
    """The comment and the code it is about: what encloses it, else what follows it."""
    inside = around(lines, comment.start, path)
    if inside is not None and inside.symbol:
        return inside
    after = comment.stop
    while after < len(lines) and not lines[after].strip():
        after += 1
    below = inside or (around(lines, after, path) if after < len(lines) else None)
    if below is None:
        return EditPlace(comment.start, comment.stop, "")
    return EditPlace(min(comment.start, below.start), below.stop, below.symbol)
