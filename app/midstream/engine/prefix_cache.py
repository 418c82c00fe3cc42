"""The prefix cache: a new prompt starts from the longest prefix that it shares with a cached
sequence.

The decoder's live cache holds one sequence. Going on with it costs nothing; when a prompt would
overwrite a long tail of it, the rows are copied aside, and copies are thrown away by last use when
they take too many bytes.

In a conversation the oldest turns are dropped some day, and all that follows them has other
positions. Where a request allows it, such rows are moved there and their keys turned (``rotary``)
instead of being read again. They were computed behind the turns that are gone, so the text may
differ from a fresh reading's. Rows that come out as if they were read are called sound; no request
is given others without having allowed it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from midstream.engine.decoder import Array, Decoder
from midstream.engine.moved_rows import MIN_RUN, Run, find_runs
from midstream.engine.prefix_files import MIN_ROWS, PrefixFiles, shared_length
from midstream.engine.rotary import Rotation

WORTH_SAVING = 48
"""Rows: a shorter tail is quicker to compute again than to look after."""

MIN_PREFIX = 4
"""Tokens in front of rows that are moved: models pay much attention to the first few, so rows that
would become the first ones are read."""

PROVING_ROWS = 2
"""Moved rows that are computed again to prove them (``Decoder.move_rows``)."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """Rows that were copied out of the cache, and how many of them are valid."""

    rows: list[Array]
    sound: int


class PrefixCache:
    """The token side of a decoder's cache: which tokens its rows stand for, and copies of earlier
    ones.

    Attributes:
        tokens: The tokens of the live rows.
        sound: How many of these rows are as they are read.
        budget: Bytes that copies may take.
    """

    def __init__(
        self,
        decoder: Decoder,
        *,
        budget: int = 64 << 20,
        files: PrefixFiles | None = None,
        moves: bool = True,
    ) -> None:
        """Start empty.

        Args:
            decoder: Whose rows these are.
            budget: Bytes that copies may take.
            files: Looked up where copies do not help.
            moves: Whether the model's attention lets rows be moved at all, as far as is known.
        """
        self.tokens: list[int] = []
        self.sound = 0
        self.budget = budget
        self._files = files
        self._decoder = decoder
        self._row_bytes = decoder.io.row_bytes
        self._saved: OrderedDict[tuple[int, ...], _Copy] = OrderedDict()
        self._moves = moves
        self._rotation: Rotation | None = None

    @property
    def saved_bytes(self) -> int:
        return sum(map(len, self._saved)) * self._row_bytes

    def open(self, prompt: Sequence[int], *, moved: bool = False) -> int:
        """Make the live rows a prefix of ``prompt``, the longest one known, and return its length.

        Args:
            prompt: The tokens.
            moved: Whether rows may be used that attended to tokens outside of the prompt.
        """
        live = shared_length(self.tokens, prompt)
        if not moved:
            live = min(live, self.sound)
        best: tuple[int, ...] | None = None
        longest = live
        start = tuple(prompt[: longest + 1])
        for key, copy in self._saved.items():
            # Most differ in the first token; one comparison is enough.
            if key[: longest + 1] == start and longest < len(prompt):
                length = shared_length(key, prompt)
                length = length if moved else min(length, copy.sound)
                if length > longest:
                    best, longest = key, length
                    start = tuple(prompt[: longest + 1])
        if moved and (count := self._open_moved(prompt, live, longest)):
            return count
        copy = self._saved[best] if best is not None else None
        if best is not None:
            self._saved.move_to_end(best)
        if self._files is not None:
            found = self._files.find(prompt, longest + MIN_ROWS)
            if found is not None:
                copy, longest = _Copy(found[0], found[1]), found[1]
        if self._worth_saving(live):
            self._save()
        self._decoder.fit(len(prompt), live if copy is None else 0)
        if copy is not None:
            self._decoder.load_rows(copy.rows, longest)
            live, self.sound = longest, copy.sound
        self.tokens = list(prompt[:live])
        self.sound = min(self.sound, live)
        return live

    def _open_moved(self, prompt: Sequence[int], live: int, longest: int) -> int:
        """Do what ``open`` does with rows at other positions, if they go further than ``longest``.

        Returns:
            How many rows there are; 0 if they do not, or if this model's cannot be moved.
        """
        if not self._moves or len(prompt) - longest < MIN_RUN:
            return 0
        best: tuple[int, ...] | None = None
        runs: list[Run] = []
        furthest = longest + MIN_RUN - 1
        for key in (None, *self._saved):
            there = self.tokens if key is None else key
            if (prefix := shared_length(there, prompt)) >= MIN_PREFIX:
                found = find_runs(there, prompt, prefix)
                if found and found[-1].target + found[-1].length > furthest:
                    best, runs = key, found
                    furthest = found[-1].target + found[-1].length
        if not runs or not self._can_turn(prompt[0]):
            return 0
        copy = None
        if best is not None:
            # Held, because saving the live rows may throw it away.
            copy = self._saved[best]
            self._saved.move_to_end(best)
        if self._worth_saving(live):
            self._save()
        if best is not None and copy is not None:
            self._decoder.load_rows(copy.rows, len(best))
            self.sound = copy.sound
        prefix, last = runs[0].target, prompt[furthest - PROVING_ROWS : furthest]
        assert self._rotation is not None
        self._moves = self._decoder.move_rows(runs, self._rotation, last)
        count = furthest if self._moves else prefix
        self._decoder.fit(len(prompt), count)
        self.tokens = list(prompt[:count])
        self.sound = min(self.sound, prefix)
        # Where the proof fails, other copies may go further than what is left.
        return count if self._moves else self.open(prompt)

    def _can_turn(self, token: int) -> bool:
        """Whether the model's keys can be turned; found out once."""
        if self._rotation is None and self._moves:
            self._rotation = self._decoder.read_rotation(token)
            self._moves = self._rotation is not None
        return self._moves

    def keep(self, count: int) -> None:
        """Forget the live rows from ``count`` on."""
        del self.tokens[count:]
        self.sound = min(self.sound, count)

    def extend(self, ids: Sequence[int]) -> None:
        """Note that rows for these tokens were computed behind the live ones."""
        if self.sound == len(self.tokens):
            self.sound += len(ids)
        self.tokens.extend(ids)

    def keep_on_disk(self) -> None:
        """Write the sound ones of the live rows to a file if they are worth it."""
        count = self.sound
        if self._files is None or count < MIN_ROWS:
            return
        tokens = self.tokens[:count]
        if count * self._row_bytes <= self._files.budget and not self._files.covers(
            tokens, WORTH_SAVING
        ):
            self._files.keep(tokens, self._decoder.save_rows(count))

    def clear(self) -> None:
        self.tokens = []
        self.sound = 0
        self._saved.clear()

    def _worth_saving(self, live: int) -> bool:
        """Whether the live rows beyond ``live`` have no copy and are worth one."""
        tokens, least = self.tokens, len(self.tokens) - WORTH_SAVING
        if least < live:
            return False
        return not any(
            len(key) > least
            and key[least] == tokens[least]
            and copy.sound >= min(least, self.sound)
            and shared_length(key, tokens) > least
            for key, copy in self._saved.items()
        )

    def _save(self) -> None:
        key = tuple(self.tokens)
        covered = [k for k, copy in self._saved.items() if copy.sound <= self.sound]
        for other in [k for k in covered if k == key[: len(k)]]:
            del self._saved[other]
        if self._size(key) > self.budget:
            return
        self._saved[key] = _Copy(self._decoder.save_rows(len(key)), self.sound)
        while self.saved_bytes > self.budget:
            self._saved.popitem(last=False)

    def _size(self, key: tuple[int, ...]) -> int:
        return len(key) * self._row_bytes
