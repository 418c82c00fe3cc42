"""Drafts for answers that are patches: SEARCH/REPLACE blocks, apply_patch and unified diffs.

A patch repeats its source with marks in front of the lines, and a mark changes how the line behind
it is cut into tokens: what ``drafting.Drafter`` finds by its tokens would have to be found anew on
every line. So the guess is made as text, which is then cut into tokens as the model would. Words
that a patch has exchanged are expected to be exchanged in the rest of the source, too; from that
follow the lines that change next, the context around them and the marks. Where there is nothing
to go by, the tokens of prompt and output decide as for any other answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from midstream.engine.bounded_prompt import token_ids
from midstream.engine.drafting import Drafter

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTEXT = 3
"""Unchanged lines around a change, before the answer has shown how many it gives."""

SURE_START = 4
"""Leading characters of a line, without its indentation, that serve as its key in the source."""

SURE_END = 3
"""Characters behind something new by which a line is taken to be its old line again."""

CHARACTERS = 6
"""Characters of text that are guessed for every token that may be drafted."""

HEAD_TOKENS = 12
"""Tokens of the output that are cut again together with the guess behind them."""

MAX_AMBIGUOUS = 3
"""Tokens that are drafted by the tokens alone within a patch, where they are mostly wrong."""

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_NAME = re.compile(r"\w")
_SEARCH = re.compile(r"<{5,9} ?SEARCH\b")
_DIVIDER = re.compile(r"={5,9}\s*$")
_REPLACE = re.compile(r">{5,9} ?REPLACE\b")
_HEADING = re.compile(r"@@|\*\*\* (Begin Patch|(Update|Add|Delete) File: )|\+\+\+ ")
_DIVIDED, _REPLACED = "=======", ">>>>>>> REPLACE"
_OPENINGS = ("<<<<<<< SEARCH", "*** Begin Patch")


class PatchDrafter:
    """A ``plan.Proposer`` for answers that may be patches of what the prompt shows."""

    def __init__(self, source: str, tokenizer: Tokenizer, prompt: Sequence[int]) -> None:
        """Start in front of the answer.

        Args:
            source: The text that may be patched, and any other text around it.
            tokenizer: How text is cut into tokens.
            prompt: What the model reads.
        """
        from tokenizers.decoders import DecodeStream

        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=False)
        self._prompt = prompt
        self._source = _PatchedLines(source.split("\n"))
        self._format: _Format | None = None
        self._before: list[str] = []
        self._line = ""
        # Tokens from the one in which the line begins, and their text.
        self._head: list[tuple[int, str]] = []

    @cached_property
    def _plain(self) -> Drafter:
        return Drafter((), self._prompt)

    def propose(self, most: int) -> list[int]:
        """Up to ``most`` tokens; fewer or none without anything to go by."""
        guess = self._guess(most * CHARACTERS) if most > 0 else ""
        draft = self._cut(guess)[:most] if guess else []
        return draft or self._plain.propose(min(most, MAX_AMBIGUOUS) if self._format else most)

    def learn(self, output: Sequence[int]) -> None:
        """Record tokens that the model has written."""
        self._plain.learn(output)
        for token in output:
            text = self._stream.step(self._tokenizer, token) or ""
            *whole, rest = (self._line + text).split("\n")
            if whole:
                self._head.clear()
            self._head.append((token, text))
            for line in whole:
                self._take(line)
            self._line = rest

    def _take(self, line: str) -> None:
        """Record a line that is complete."""
        if self._format is None or not self._format.take(line):
            self._format = _opened(line, self._before, self._source)
        self._before = [*self._before[-1:], line]

    def _guess(self, characters: int) -> str:
        """Return the text that is expected next, "" where nothing is."""
        lines = self._format.ahead(self._line) if self._format else _openings(self._line)
        first = next(lines, None)
        rest = None if first is None else _rest(self._line, first)
        if rest is None:
            return ""
        text = rest
        for line in chain(lines, ("",)):
            text += "\n"
            if len(text) > characters:
                break
            text += line
        return text

    def _cut(self, guess: str) -> list[int]:
        """Cut a guess into tokens; none if the output's last tokens would be others with it."""
        head = self._head[-HEAD_TOKENS:]
        text = "".join(piece for _, piece in head) + guess
        ids = token_ids(self._tokenizer, [text])
        known = [token for token, _ in head]
        # The guess may end within a token.
        return ids[len(known) : -1] if ids[: len(known)] == known else []


class _Format(Protocol):
    """Follows a patch, line by line."""

    def take(self, line: str) -> bool:
        """Take a line; returns whether it is a part of the patch."""
        ...

    def ahead(self, start: str) -> Iterator[str]:
        """Yield the expected lines, beginning with the one that starts with ``start``."""
        ...


def _opened(line: str, before: Sequence[str], source: _PatchedLines) -> _Format | None:
    if _SEARCH.match(line):
        return _SearchReplaceBlocks(source, [*before[-1:], line])
    if not _HEADING.match(line):
        return None
    hunks = _Hunks(source)
    hunks.take(line)
    return hunks


def _openings(start: str) -> Iterator[str]:
    """Yield the first line of a patch, if a part of it has been written."""
    return (line for line in _OPENINGS if start and line.startswith(start))


def _rest(start: str, line: str) -> str | None:
    """Return what of a line is still to be written, None if the start is another line's."""
    if line.startswith(start):
        return line[len(start) :]
    same = 0
    while same < len(line) and same < len(start) and line[same] == start[same]:
        same += 1
    for length in range(len(start) - same, SURE_END - 1, -1):
        found = line.find(start[-length:], same)
        if found >= 0:
            return line[found + length :]
    return None


@dataclass(slots=True)
class _PatchedLines:
    """The lines that may be patched, and what the patch does to their words.

    Attributes:
        lines: The lines.
        words: Words of the source that were replaced, and by what.
        lead: Unchanged lines that the patch gives in front of a change.
        trail: Unchanged lines that it gives behind one.
    """

    lines: list[str]
    words: dict[str, str] = field(default_factory=dict[str, str])
    lead: int = CONTEXT
    trail: int = CONTEXT

    def changed(self, line: str) -> str:
        """Return the expected new form of a line."""
        if not any(word in line for word in self.words):
            return line
        return _WORD.sub(lambda found: self.words.get(found[0], found[0]), line)

    def changes(self, at: int) -> bool:
        """Whether a line is expected to change; not where it has the new word already."""
        line = self.lines[at]
        return any(
            word in line and new not in line and self.changed(line) != line
            for word, new in self.words.items()
        )

    def hunk_behind(self, at: int) -> int | None:
        """Return where the context of the first change from ``at`` on is expected to begin."""
        if not self.words:
            return None
        change = next((n for n in range(at, len(self.lines)) if self.changes(n)), None)
        return None if change is None else max(0, change - self.lead)

    def place(self, before: Sequence[str], start: str, near: int) -> int | None:
        """Return the line that begins with a text and stands behind others.

        Of several lines, the first from ``near`` on, else the first one; None if there is none, or
        if the known text is too short to tell.
        """
        lines = self.lines
        if len(start.lstrip()) + sum(len(line.strip()) for line in before) < SURE_START:
            return None
        count = len(before)
        places = range(count, len(lines))
        for at in chain(places[max(0, near - count) :], places[: max(0, near - count)]):
            if (
                lines[at].startswith(start)
                and (not count or lines[at - 1] == before[-1])
                and lines[at - count : at] == before
            ):
                return at
        return self.place(before[-1:], start, near) if count > 1 else None

    def learn(self, old: str, new: str) -> None:
        """Record that a line became another one."""
        before, after = _WORD.findall(old), _WORD.findall(new)
        parts = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        for kind, begin, end, start, stop in parts:
            if kind == "equal":
                for word in before[begin:end]:
                    self.words.pop(word, None)
            elif end - begin == stop - start == 1 and _NAME.match(before[begin]):
                self.words[before[begin]] = after[start]


class _SearchReplaceBlocks:
    """SEARCH/REPLACE blocks."""

    def __init__(self, source: _PatchedLines, opening: Sequence[str]) -> None:
        """Start behind the first SEARCH line.

        Args:
            source: What is searched.
            opening: The lines before the first line that is searched: the file's name, the mark.
        """
        self._source = source
        self._opening = list(opening)
        self._between: list[str] | None = None
        self._old: list[str] = []
        self._new: list[str] | None = None
        self._place = 0
        self._near = 0

    def take(self, line: str) -> bool:
        if self._between is not None:
            self._between.append(line)
            if _SEARCH.match(line):
                self._opening, self._between = self._between, None
                self._old = []
            return len(self._between or ()) <= len(self._opening) + 1
        if self._new is None:
            if _DIVIDER.match(line):
                self._new, self._place = [], 0
                return True
            self._old.append(line)
            return True
        if _REPLACE.match(line):
            self._end(self._new)
            self._new, self._between = None, []
            return True
        self._new.append(line)
        self._place = self._align(line)
        return True

    def _align(self, line: str) -> int:
        """Return which of the searched lines comes behind a new one; learn from what changed."""
        old, place = self._old, self._place
        found = next((n + 1 for n in range(place, len(old)) if old[n] == line), None)
        if found is not None:
            return found
        if place < len(old) and _similar(old[place], line):
            self._source.learn(old[place], line)
            return place + 1
        return place

    def _end(self, new: Sequence[str]) -> None:
        """Learn how much context a block gives."""
        old, lead, trail = self._old, 0, 0
        shorter = min(len(old), len(new))
        while lead < shorter and old[lead] == new[lead]:
            lead += 1
        while trail < shorter - lead and old[-1 - trail] == new[-1 - trail]:
            trail += 1
        if lead < len(old) or lead < len(new):
            self._source.lead, self._source.trail = lead, trail
            at = self._source.place(old, "", self._near)
            self._near = self._near if at is None else at - trail

    def ahead(self, start: str) -> Iterator[str]:
        source, old, near = self._source, list(self._old), self._near
        opening = self._opening
        if self._between is not None:
            opening = opening[len(self._between) :]
        elif self._new is not None:
            ended = start and _REPLACED.startswith(start)
            yield from self._replacing(old[len(old) if ended else self._place :])
        elif start and _DIVIDED.startswith(start):
            yield _DIVIDED
            yield from self._replacing(old)
        else:
            at = source.place(old, start, near)
            if at is None and not old and not start:
                at = source.hunk_behind(near)
            if at is None:
                return
            yield from self._searching(at, old)
            yield from self._replacing(old)
            near = at + len(old)
        # The next block.
        yield from opening
        at = source.hunk_behind(near)
        if at is not None:
            searched: list[str] = []
            yield from self._searching(at, searched)
            yield from self._replacing(searched)

    def _searching(self, at: int, old: list[str]) -> Iterator[str]:
        """Yield the lines that are still searched, and add them to ``old``; then the divider."""
        source, quiet, changed = self._source, 0, False
        known = len(old)
        for number, line in enumerate(chain(tuple(old), source.lines[at:])):
            if number >= known and changed and quiet >= source.trail:
                break
            changes = source.changed(line) != line
            quiet, changed = (0, True) if changes else (quiet + 1, changed)
            if number >= known:
                old.append(line)
                yield line
        yield _DIVIDED

    def _replacing(self, old: Sequence[str]) -> Iterator[str]:
        """Yield what lines become."""
        for line in old:
            yield self._source.changed(line)
        yield _REPLACED


def _similar(old: str, new: str) -> bool:
    """Whether a line is another one changed, and not a new one."""
    matcher = SequenceMatcher(None, _WORD.findall(old), _WORD.findall(new), autojunk=False)
    return matcher.ratio() >= 0.5


class _Hunks:
    """The hunks of apply_patch or of a unified diff."""

    def __init__(self, source: _PatchedLines) -> None:
        self._source = source
        self._old: list[str] = []
        self._removed: list[str] = []
        self._near = 0
        self._added = self._lead = self._quiet = 0
        self._changed = self._numbered = False
        self._last = ""

    def take(self, line: str) -> bool:
        mark, text, self._last = line[:1], line[1:], line
        if _HEADING.match(line):
            self._end_hunk()
            self._numbered = line.startswith("@@ -")
        elif mark == "+":
            if self._added < len(self._removed):
                self._source.learn(self._removed[self._added], text)
            self._added += 1
            self._changed, self._quiet = True, 0
        elif mark in (" ", "-", ""):
            self._old.append(text)
            if self._added or mark != "-":
                self._removed, self._added = [], 0
            if mark == "-":
                self._removed.append(text)
                self._changed, self._quiet = True, 0
            else:
                self._quiet += 1
                self._lead += not self._changed
        else:
            return False
        return True

    def _end_hunk(self) -> None:
        """Learn how much context a hunk gives."""
        if self._changed:
            self._source.lead, self._source.trail = self._lead, self._quiet
            at = self._source.place(self._old, "", self._near)
            self._near = self._near if at is None else at - self._quiet
        self._old, self._removed = [], []
        self._added = self._lead = self._quiet = 0
        self._changed = False

    def ahead(self, start: str) -> Iterator[str]:
        source, last = self._source, self._last
        if not self._old and not self._changed and not last.startswith("@@"):
            # In front of the first hunk.
            if last.startswith("*** Begin"):
                yield "*** Update File: "
            elif last.startswith("*** Update"):
                yield from self._hunk(None, "")
            return
        at = source.place(self._old, start[1:] if start[:1] in (" ", "-") else "", self._near)
        yield from self._hunk(at, start)

    def _hunk(self, at: int | None, start: str) -> Iterator[str]:
        """Yield the rest of a hunk and those behind it."""
        source, lines = self._source, self._source.lines
        quiet, changed, removed = self._quiet, self._changed, self._removed[self._added :]
        adding = bool(self._added and removed)
        if not self._old and not changed:
            at = source.hunk_behind(self._near) if at is None else at
            if self._last[:2] != "@@":
                yield "@@"
        at = len(lines) if at is None else at
        while True:
            known = at < len(lines)
            expected = known and not start and not adding and source.changes(at)
            if removed and not expected and start[:1] != "-":
                for line in removed:
                    yield "+" + source.changed(line)
                removed, quiet, changed, adding, start = [], 0, True, False, ""
                continue
            if not known:
                return
            if changed and not removed and not start and quiet >= source.trail:
                # The headings of unified diffs have line numbers.
                if self._numbered:
                    return
                behind = source.hunk_behind(at - quiet)
                yield "*** End Patch" if behind is None else "@@"
                if behind is None:
                    return
                at, quiet, changed = behind, 0, False
                continue
            if expected or start[:1] == "-":
                yield "-" + lines[at]
                removed.append(lines[at])
            else:
                yield " " + lines[at]
                quiet += 1
            at, start = at + 1, ""
