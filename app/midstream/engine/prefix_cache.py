"""Keeps what was computed: a new prompt starts from the longest prefix that it shares with a cached
sequence.

The decoder's live cache holds one sequence. Going on with it costs nothing; when a prompt would
overwrite a long tail of it, the rows are copied aside, and copies are thrown away by last use when
they take too many bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from midstream.engine.decoder import Array, Decoder
from midstream.engine.prefix_files import LEAST_ROWS, PrefixFiles, shared_length

WORTH_SAVING = 48
"""Rows: a shorter tail is quicker to compute again than to look after."""


class PrefixCache:
    """The token side of a decoder's cache: which tokens its rows stand for, and copies of earlier
    ones.

    Attributes:
        tokens: the tokens of the live rows.
        budget: bytes that copies may take.
    """

    def __init__(
        self, decoder: Decoder, *, budget: int = 64 << 20, files: PrefixFiles | None = None
    ) -> None:
        """Start empty; `files` are looked up where copies do not help."""
        self.tokens: list[int] = []
        self.budget = budget
        self._files = files
        self._decoder = decoder
        self._row_bytes = decoder.io.row_bytes
        self._saved: OrderedDict[tuple[int, ...], list[Array]] = OrderedDict()

    @property
    def saved_bytes(self) -> int:
        return sum(map(len, self._saved)) * self._row_bytes

    def open(self, prompt: Sequence[int]) -> int:
        """Make the live rows a prefix of `prompt`, the longest one known, and return its length."""
        live = shared_length(self.tokens, prompt)
        best: tuple[int, ...] | None = None
        longest = live
        start = tuple(prompt[: longest + 1])
        for key in self._saved:
            # Most differ in the first token; one comparison is enough.
            if key[: longest + 1] == start and longest < len(prompt):
                best, longest = key, shared_length(key, prompt)
                start = tuple(prompt[: longest + 1])
        rows = self._saved[best] if best is not None else None
        if best is not None:
            self._saved.move_to_end(best)
        if self._files is not None:
            found = self._files.find(prompt, longest + LEAST_ROWS)
            rows, longest = found or (rows, longest)
        if self._worth_saving(live):
            self._save()
        self._decoder.fit(len(prompt), live if rows is None else 0)
        if rows is not None:
            self._decoder.load_rows(rows, longest)
            live = longest
        self.tokens = list(prompt[:live])
        return live

    def keep(self, count: int) -> None:
        """Forget the live rows from `count` on."""
        del self.tokens[count:]

    def extend(self, ids: Sequence[int]) -> None:
        """Note that rows for these tokens were computed behind the live ones."""
        self.tokens.extend(ids)

    def keep_on_disk(self) -> None:
        """Write the live rows to a file if they are worth it."""
        count = len(self.tokens)
        if self._files is None or count < LEAST_ROWS:
            return
        if count * self._row_bytes <= self._files.budget and not self._files.covers(
            self.tokens, WORTH_SAVING
        ):
            self._files.keep(self.tokens, self._decoder.save_rows(count))

    def clear(self) -> None:
        self.tokens = []
        self._saved.clear()

    def _worth_saving(self, live: int) -> bool:
        """Whether the live rows beyond `live` have no copy and are worth one."""
        tokens, least = self.tokens, len(self.tokens) - WORTH_SAVING
        if least < live:
            return False
        return not any(
            len(key) > least and key[least] == tokens[least] and shared_length(key, tokens) > least
            for key in self._saved
        )

    def _save(self) -> None:
        key = tuple(self.tokens)
        for other in [k for k in self._saved if k == key[: len(k)]]:
            del self._saved[other]
        if self._size(key) > self.budget:
            return
        self._saved[key] = self._decoder.save_rows(len(key))
        while self.saved_bytes > self.budget:
            self._saved.popitem(last=False)

    def _size(self, key: tuple[int, ...]) -> int:
        return len(key) * self._row_bytes
