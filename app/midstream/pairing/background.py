"""What the session asks the model on its own, one thing after the other while nobody else does.

Three things end up here: comments with ``AI!`` that were saved into a file, the follow-on edits of
a change that a person saved (continuous mode), and "do the same elsewhere" for one hunk.  Each is a
turn like any other, so its hunks wait for a decision.  A person always comes first: an errand
begins when no turn runs, and a stop drops all that wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from midstream.edits.syntax import is_python
from midstream.errors import UserError
from midstream.pairing.ai_comments import AiComment, find_comments
from midstream.pairing.board import Board
from midstream.pairing.events import BackgroundDone, FileWritten, SessionEvent
from midstream.pairing.similar_edits import (
    Place,
    Substitution,
    around,
    places,
    renamed_import,
    similar_places,
    substitutions,
)
from midstream.pairing.turn.doubt import LARGER_MODEL
from midstream.pairing.turns import Turn

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.responses.model_info import ModelInfo
    from midstream.workspace.files import Workspace

MOST_PLACES = 20
"""Places that one errand goes to."""
LONGEST_BYTES = 1_000_000
"""Larger files have no errands."""
REMEMBERED_FILES = 2_000
"""Files whose text continuous mode remembers, to see what a save has changed."""


class Instruct(Protocol):
    """Runs one turn in the background and returns when it has ended."""

    def __call__(
        self,
        text: str,
        *,
        path: str,
        selection: tuple[int, int],
        consume: bool,
        words: bool,
        known: str | None,
    ) -> Awaitable[Turn]:
        """See ``PairingSession.instruct``; ``consume`` leaves AI comments out of the region,
        ``words`` wants an answer and no change, and ``known`` is what the region will be where no
        model has to say so.
        """
        ...


@dataclass(slots=True)
class _Errand:
    """One instruction and the places it goes to.

    Attributes:
        path: The file.
        text: The instruction.
        find: Where it is wanted in the lines of the file as they are at that moment.
        wanted: What is replaced, where it is that plain.
        consume: Whether AI comments of the region go away with it.
        words: Whether it is a question, to be answered and nothing changed.
        done: Places that it has been to.
    """

    path: str
    text: str
    find: Callable[[Sequence[str]], Sequence[Place]]
    wanted: Substitution | None = None
    consume: bool = False
    words: bool = False
    done: set[str] = field(default_factory=set[str])


class BackgroundTasks:
    """The queue of what the session asks on its own.

    Attributes:
        continuous: Whether a save makes the model propose the follow-on edits.
        comments: Whether ``AI!`` comments in saved files are carried out.
    """

    def __init__(
        self,
        *,
        workspace: Workspace,
        files: Mapping[str, FileProposal],
        hunks: HunkStore,
        board: Board,
        model: Callable[[], ModelInfo],
        instruct: Instruct,
        idle: Callable[[], Awaitable[None]],
        comments: bool = True,
    ) -> None:
        self.continuous = False
        self.comments = comments
        self._workspace = workspace
        self._files = files
        self._hunks = hunks
        self._board = board
        self._model = model
        self._instruct = instruct
        self._idle = idle
        self._waiting: deque[_Errand] = deque()
        self._running: asyncio.Task[None] | None = None
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._seen: dict[str, Counter[tuple[str, str]]] = {}
        self._texts: dict[str, list[str]] = {}
        board.subscribe(self._hear)

    @property
    def waiting(self) -> int:
        """BackgroundTasks that have not ended yet."""
        return len(self._waiting)

    async def turn(self, *, on: bool) -> None:
        """Switch continuous mode; from then on what a save has changed is looked at."""
        self.continuous = on
        self._texts = await asyncio.to_thread(self._read_all) if on else {}
        self._board.touch()

    def drop(self) -> int:
        """Forget what waits; returns how many errands that were."""
        dropped = len(self._waiting)
        self._waiting.clear()
        return dropped

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Begin nothing meanwhile."""
        self._may_begin.clear()
        try:
            yield
        finally:
            self._may_begin.set()

    async def close(self) -> None:
        """End the work in the background."""
        self.drop()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def changed(self, paths: Iterable[str]) -> None:
        """Somebody else has saved these files."""
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
            if self.continuous and before is not None and is_python(path):
                await self._follow_on(path, before, lines)

    async def elsewhere(self, hunk_id: int) -> int:
        """Ask for the change of a hunk in the other places where it is wanted.

        Returns:
            The number of files it is asked for in; 0 after a notice that says why.
        """
        hunk = self._hunks.get(hunk_id)
        base = list(self._files[hunk.path].base.lines)
        after = [*base[: hunk.start], *hunk.new, *base[hunk.stop :]]
        found = substitutions(base, after) if is_python(hunk.path) else []
        now = list(self._files[hunk.path].composed().lines)
        mine = around(now, self._written(hunk.path, hunk.start))
        asked = 0
        for wanted in found:
            asked += await self._spread(hunk.path, now, wanted, besides=mine, asked=True)
        if not found and self._model().is_chat and hunk.old:
            asked += self._spread_alike(hunk.path, now, hunk.old, hunk.new, besides=mine)
        if asked:
            self._begin()
        elif found or self._model().is_chat:
            self._board.inform(await self._why_not(hunk.path, now, found, mine))
        else:
            self._board.inform(
                "This change is no plain rename or replacement; the built-in model can only "
                "repeat those, a chat model (--endpoint) can repeat others."
            )
        return asked

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
        question = comment.kind == "question"
        if question and not self._model().is_chat:
            self._board.warn(
                f"The AI? comment at {where} needs a model that chats, and the one in use only "
                "edits; --endpoint names another.",
                LARGER_MODEL,
            )
            return
        if question:
            text = f"Answer in at most two sentences and leave the code as it is: {text}"
        kind = comment.kind

        def find(lines: Sequence[str]) -> list[Place]:
            return [
                _place_of(lines, found)
                for found in find_comments(lines, path)
                if (found.kind, found.text) == (kind, comment.text)
            ][:1]

        self._board.inform(f'Asked by a comment at {where}: "{comment.text}"')
        self._waiting.append(_Errand(path, text, find, consume=not question, words=question))

    async def _follow_on(self, path: str, before: Sequence[str], after: Sequence[str]) -> None:
        asked = 0
        for wanted in substitutions(before, after):
            asked += await self._spread(path, after, wanted, besides=None)
        if asked:
            self._board.inform(
                f"Your change of {path} is wanted in other places; the hunks will wait for you."
            )
            self._begin()

    async def _spread(
        self,
        path: str,
        lines: Sequence[str],
        wanted: Substitution,
        *,
        besides: Place | None,
        asked: bool = False,
    ) -> int:
        """Queue an errand for every file that has a place for a substitution; how many."""
        longest = self._model().max_region_lines

        def find(now: Sequence[str]) -> list[Place]:
            return places(now, wanted, longest)

        others = [p for p in find(lines) if _key(p) != _key(besides)]
        found = [path] if any(self._free(path, p) for p in others) else []
        if _reaches_out(wanted, asked=asked):
            found += await asyncio.to_thread(self._others_with, path, find, wanted.old)
        for other in found:
            errand = _Errand(other, wanted.instruction, find, wanted)
            if other == path:
                errand.done.add(_key(besides))
            self._waiting.append(errand)
        return len(found)

    async def _why_not(
        self, path: str, lines: Sequence[str], found: Sequence[Substitution], mine: Place | None
    ) -> str:
        """Why a change is asked for nowhere else: what keeps its other places from it, if any."""
        for wanted in found:

            def find(now: Sequence[str], wanted: Substitution = wanted) -> list[Place]:
                return places(now, wanted)

            here = [place for place in find(lines) if _key(place) != _key(mine)]
            held = [place for place in here if not self._free(path, place)]
            if held:
                return (
                    f"This change is wanted in {_named(held[0])} as well, where a hunk waits "
                    "already; decide that first."
                )
            names = [_named(place) for place in here]
            if _reaches_out(wanted, asked=True):
                names += await asyncio.to_thread(self._others_with, path, find, wanted.old)
            longest = self._model().max_region_lines
            if names and longest is not None:
                return (
                    f"This change is wanted in {names[0]} as well, which has more than the "
                    f"{longest} lines that this model takes; mark some with v and ask there."
                )
        return "No other place was found where this change is wanted."

    def _spread_alike(
        self,
        path: str,
        lines: Sequence[str],
        old: Sequence[str],
        new: Sequence[str],
        *,
        besides: Place | None,
    ) -> int:
        longest = self._model().max_region_lines

        def find(now: Sequence[str]) -> list[Place]:
            return similar_places(now, old, longest)

        if not any(_key(place) != _key(besides) for place in find(lines)):
            return 0
        shown = "".join([*(f"-{line}\n" for line in old), *(f"+{line}\n" for line in new)])
        text = f"Make the same change here that was made in another place:\n{shown}"
        errand = _Errand(path, text, find)
        errand.done.add(_key(besides))
        self._waiting.append(errand)
        return 1

    def _others_with(
        self, path: str, find: Callable[[Sequence[str]], Sequence[Place]], word: str
    ) -> list[str]:
        """Other Python files with a place (blocking)."""
        found: list[str] = []
        for other in self._python_files():
            if other == path or len(found) >= MOST_PLACES:
                continue
            lines = self._read(other)
            if lines is not None and any(word in line for line in lines) and find(lines):
                found.append(other)
        return found

    # Working

    def _begin(self) -> None:
        if self._waiting and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._work())
        self._board.touch()

    async def _work(self) -> None:
        while self._waiting:
            await self._may_begin.wait()
            await self._idle()
            if not self._waiting:  # a stop has dropped it meanwhile
                return
            if not self._may_begin.is_set():
                continue
            errand = self._waiting[0]
            found = await self._next_place(errand)
            if found is None:
                self._finish(errand)
                continue
            place, known = found
            errand.done.add(_key(place))
            try:
                turn = await self._instruct(
                    errand.text,
                    path=errand.path,
                    selection=(place.start, place.stop),
                    consume=errand.consume,
                    words=errand.words,
                    known=known,
                )
            except UserError as error:
                if error.code == "turn-running":  # a person was quicker
                    errand.done.discard(_key(place))
                    continue
                self._board.warn(f"{errand.path}: {error}")
                self._finish(errand)
                continue
            if turn.status == "stopped":  # for a person; a stop that is meant has dropped it all
                errand.done.discard(_key(place))

    def _finish(self, errand: _Errand) -> None:
        if self._waiting and self._waiting[0] is errand:
            self._waiting.popleft()
        if self._waiting:
            self._board.touch()
        else:
            self._board.emit(BackgroundDone())

    async def _next_place(self, errand: _Errand) -> tuple[Place, str | None] | None:
        """Where an errand goes next, and what its lines will be if that needs no model."""
        if len(errand.done) > MOST_PLACES:
            return None
        lines = await asyncio.to_thread(self._read, errand.path)
        if lines is None:
            return None
        for place in await asyncio.to_thread(errand.find, lines):
            wanted = errand.consume or self._free(errand.path, place)
            if wanted and _key(place) not in errand.done:
                return place, self._known(errand, lines[place.start : place.stop])
        return None

    def _known(self, errand: _Errand, lines: Sequence[str]) -> str | None:
        if errand.wanted is None or not self._model().is_edit_model:
            return None
        after = renamed_import(lines, errand.wanted)
        return None if after is None else "".join(f"{line}\n" for line in after)

    def _free(self, path: str, place: Place) -> bool:
        """Whether no undecided hunk lies there; what a person has not decided yet is not redone."""
        for hunk in self._hunks.undecided(path):
            start = self._written(path, hunk.start)
            if start < place.stop and place.start < max(start + hunk.stop - hunk.start, start + 1):
                return False
        return True

    def _written(self, path: str, line: int) -> int:
        """Where a line of the base is in the file as it is on disk, accepted hunks included."""
        edits = self._hunks.accepted_edits(path)
        return line + sum(len(e.lines) - (e.stop - e.start) for e in edits if e.stop <= line)

    # Reading

    def _hear(self, event: SessionEvent) -> None:
        """Own writes are nobody's change; they are what the next save is compared with."""
        if isinstance(event, FileWritten) and event.path in self._texts:
            self._texts[event.path] = list(self._files[event.path].composed().lines)

    def _python_files(self) -> Iterator[str]:
        return (path for path in self._workspace.files() if is_python(path))

    def _read_all(self) -> dict[str, list[str]]:
        texts: dict[str, list[str]] = {}
        for path in self._python_files():
            if len(texts) >= REMEMBERED_FILES:
                break
            if (lines := self._read(path)) is not None:
                texts[path] = lines
        return texts

    def _read(self, path: str) -> list[str] | None:
        """The lines of a file, ``None`` if it is no readable text of a decent size (blocking)."""
        from midstream.edits.documents import NotTextError, SourceText

        try:
            data = self._workspace.read(path)
            return list(SourceText.from_bytes(data).lines) if len(data) <= LONGEST_BYTES else None
        except (UserError, NotTextError):
            return None


def _reaches_out(wanted: Substitution, *, asked: bool) -> bool:
    """Whether a substitution is looked for in other files.

    An attribute of that name may be another class's there: only who asks for it gets it.
    """
    return not wanted.scope and (wanted.kind == "name" or (asked and wanted.kind == "attribute"))


def _named(place: Place) -> str:
    return f"`{place.symbol}`" if place.symbol else f"line {place.start + 1}"


def _key(place: Place | None) -> str:
    """What tells a place from others of its file; ``""`` for no place."""
    return "" if place is None else place.symbol or f"line {place.start}"


def _place_of(lines: Sequence[str], comment: AiComment) -> Place:
    """The comment and the code it is about: what it stands in, else what follows it."""
    inside = around(lines, comment.start)
    if inside is not None and inside.symbol:
        return inside
    after = comment.stop
    while after < len(lines) and not lines[after].strip():
        after += 1
    below = inside or (around(lines, after) if after < len(lines) else None)
    if below is None:
        return Place(comment.start, comment.stop, "")
    return Place(min(comment.start, below.start), below.stop, below.symbol)
