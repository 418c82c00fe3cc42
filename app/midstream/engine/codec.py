"""The edit codec: how a region rewrite is encoded for a small edit model, and decoded.

A small model fails at copying long names and long stretches of code, so the codec makes both
trivial while the text on the wire stays a plain rewrite of the region:

- *names*: what the instruction names becomes ``<i1>``, ``<i2>``... (identifiers, numbers) or
  ``<q1>``... (quoted or backticked code and phrases); every other name, comment or piece of a
  string that would need more than one token becomes ``<v1>``, ``<v2>``... The decoder puts the text
  back.
- *lines*: the region is dedented and every source line begins with an anchor, ``<L1>``, ``<L2>``...
  In the answer an anchor alone means "this line as it was", anchor + ``<ind>`` / ``<ded>`` the same
  line one level deeper or shallower, anchor + ``<swap>`` + slot + content the same line with that
  content wherever the slot stands, anchor + ``<cut>`` + first + last + content the same line with
  that content in place of the tokens from first to last, anchor + content replaces the line,
  ``<new>`` + content inserts one, and a skipped anchor deletes its line. ``<end>`` gives up: the
  rest stays as it was.
- *redirects*: what was asked while an answer was being written takes the place of the first
  instruction, or is appended behind the lines that stay, so that all before it is still in the
  cache: ``<ins>`` first ``<src>`` region ``<tgt>`` kept lines ``<ins>`` second ``<tgt>`` rest.

Everything is lossless for any text; ``tokenizer.json`` is an ordinary byte-level BPE with these
extra tokens. The codec knows nothing of ONNX graphs or of where the region comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from random import Random

from midstream.edits.request import carried
from midstream.engine.answer import AnswerChoice, StreamDecoder
from midstream.engine.confidence import AnchorReading
from midstream.engine.edit_request import EditRequest, corrected_request
from midstream.engine.layout import (
    Layout,
    align,
    common_margin,
    cut_span,
    deeper,
    next_line,
    places,
    shallower,
    split_lines,
)
from midstream.engine.plan import EncodedRequest
from midstream.engine.python_lines import fitted, may_come
from midstream.engine.slots import SlotTable, instruction_pieces, later_pieces
from midstream.engine.vocabulary import Vocabulary
from midstream.errors import UserError

MAX_SWAP = 14
"""Most tokens that follow a ``<swap>``."""
MAX_CUT = 32
"""Most tokens that follow a ``<cut>``."""


class RegionTooLong(UserError):  # noqa: N818 - reads as the sentence it raises
    """The region has more lines or tokens than this model can rewrite at once."""


@dataclass(frozen=True, slots=True)
class _Head:
    """A prompt up to its first ``<tgt>``, which says nothing yet of what is written already."""

    layout: Layout
    table: SlotTable
    ids: tuple[int, ...]


MAX_HEADS = 8
"""LRU size of encoded prompt heads; retries usually hit the same region."""


class EditCodec:
    """Encodes requests and training targets; a ``prompts.RegionCodec``."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab
        self.vocab_size = vocab.size
        self.reading = AnchorReading(vocab)
        self._known_head = lru_cache(MAX_HEADS)(partial(self._head, shuffle=None))

    @classmethod
    def load(cls, folder: Path) -> EditCodec:
        return cls(Vocabulary.load(folder))

    def encode(self, request: EditRequest) -> EncodedRequest:
        """Encode a request.

        Raises:
            RegionTooLong: The region has more lines than the model has anchors.
        """
        layout, table, prompt, used = self._prompt(
            corrected_request(request, self.vocab.limits.lines), None
        )
        anchors = [self.vocab.anchor_0 + k for k in range(used, len(layout.lines) + 1)]
        kept = tuple(split_lines(request.kept))
        return EncodedRequest(
            prompt_ids=prompt,
            draft_ids=anchors,
            stop_ids=frozenset({self.vocab.end_id, self.vocab.anchor_0 + len(layout.lines)}),
            decoder=StreamDecoder(self.vocab, layout, table, used, kept),
            # A rewrite that says more than the whole region and its instruction repeats itself.
            most=len(prompt) + 64,
            choice=AnswerChoice(self.vocab, layout, table, used, kept),
        )

    def encode_target(
        self, request: EditRequest, target: str | None, *, shuffle: Random | None = None
    ) -> tuple[list[int], list[int]]:
        """Encode a request together with its answer, in canonical form.

        Args:
            request: The request; ``kept`` must be a prefix of ``target`` made of whole lines.
            target: The whole rewritten region, kept lines included; None: the model gives up.
            shuffle: In training, a source of randomness for anchor offsets and slot numbers.

        Returns:
            ``(prompt_ids, target_ids)``; the prompt includes the kept lines, the target ends with
            its stop token.

        Raises:
            RegionTooLong: As in ``encode``.
            ValueError: ``kept`` is not a prefix of ``target``.
        """
        layout, table, prompt, used = self._prompt(request, shuffle)
        if target is None:
            return prompt, [self.vocab.end_id]
        if not target.startswith(request.kept):
            raise ValueError("kept is not a prefix of target")
        rest = split_lines(target[len(request.kept) :])
        kept = split_lines(request.kept)
        rest_ids, _ = self._target(layout, table, rest, used, kept, prefix=False)
        stop = self.vocab.anchor_0 + layout.first_anchor + len(layout.lines)
        return prompt, [*rest_ids, stop]

    def _prompt(
        self, request: EditRequest, shuffle: Random | None
    ) -> tuple[Layout, SlotTable, list[int], int]:
        """Return (layout, table, prompt tokens, source lines that the kept lines use up)."""
        region = request.region
        appended = self.vocab.limits.appended and request.kept and request.earlier
        first = carried(request.earlier).instruction if appended else request.asked
        if shuffle is not None:
            head = self._head(first, region, shuffle=shuffle)
        else:
            head = self._known_head(first, region)
        layout, table, ids = head.layout, head.table, list(head.ids)
        kept_ids, used = self._target(layout, table, split_lines(request.kept), 0, [], prefix=True)
        ids += kept_ids
        if appended:
            table = table.copy()
            words = later_pieces(request.instruction, region, table)
            ids += [
                self.vocab.ids["<ins>"],
                *self.vocab.encode_pieces(words),
                self.vocab.ids["<tgt>"],
            ]
        return layout, table, ids, used

    def _head(self, instruction: str, region: str, *, shuffle: Random | None) -> _Head:
        lines = split_lines(region)
        if len(lines) > self.vocab.limits.lines:
            raise RegionTooLong(
                f"The region has {len(lines)} lines and this model rewrites at most "
                f"{self.vocab.limits.lines} at once; select a smaller part."
            )
        layout = Layout(common_margin(lines), lines)
        if shuffle is not None:
            layout.first_anchor = shuffle.randrange(self.vocab.limits.lines - len(lines) + 1)
        table = SlotTable(
            self.vocab.limits.names,
            self.vocab.limits.phrases,
            self.vocab.limits.values,
            self.vocab.is_single,
            shuffle,
        )
        words = instruction_pieces(instruction, region, table)
        table.add_region([layout.strip(line) or "" for line in lines])
        ids = [
            self.vocab.ids["<ins>"],
            *self.vocab.encode_pieces(words),
            self.vocab.ids["<src>"],
        ]
        for number, line in enumerate(lines):
            ids.append(self.vocab.anchor_0 + layout.first_anchor + number)
            ids += self.vocab.content(layout, table, line)
        ids.append(self.vocab.anchor_0 + layout.first_anchor + len(lines))
        ids.append(self.vocab.ids["<tgt>"])
        return _Head(layout, table, tuple(ids))

    def _target(
        self,
        layout: Layout,
        table: SlotTable,
        lines: list[str],
        used: int,
        kept: list[str],
        *,
        prefix: bool,
    ) -> tuple[list[int], int]:
        """Encode target lines, which follow ``kept``, against the source lines from ``used`` on.

        With ``prefix`` the lines are the start of an answer, so that source lines after the last
        match stay unused. Returns the tokens and how many source lines are used up.
        """
        source = layout.lines[used:]
        ids: list[int] = []
        consumed = 0
        for number, (src, line) in enumerate(align(source, lines, open_end=prefix)):
            if src is None:
                at = used + consumed
                above, below = [*kept, *lines[:number]], next_line(layout.lines[at:])
                sound = may_come(line, None, above=above, source=layout.lines, used=at)
                sound = sound and fitted(line, above, below) == line
                content = self.vocab.content(layout, table, line) if sound else self.vocab.raw(line)
                ids += [self.vocab.new_id, *content]
                continue
            consumed = src + 1
            ids.append(self.vocab.anchor_0 + layout.first_anchor + used + src)
            old = source[src]
            if line == old:
                continue
            if line == deeper(layout, old):
                ids.append(self.vocab.ids["<ind>"])
            elif line == shallower(layout, old):
                ids.append(self.vocab.ids["<ded>"])
            else:
                above = [*kept, *lines[:number]]
                ids += self._changed(layout, table, used + src, line, above)
        return ids, used + consumed if prefix else len(layout.lines)

    def _changed(
        self, layout: Layout, table: SlotTable, at: int, new: str, above: list[str]
    ) -> list[int]:
        """Return the tokens after an anchor for a line that becomes another line."""
        old = layout.lines[at]
        source, target = (
            self.vocab.content(layout, table, old),
            self.vocab.content(layout, table, new),
        )
        if not may_come(new, old, above=above, source=layout.lines, used=at + 1):
            return self.vocab.raw(new)
        if target and self.vocab.ids["<raw>"] not in (
            *source,
            *target,
        ):  # a swap keeps the indentation
            swap = self._swap(source, target)
            if swap and len(swap) <= MAX_SWAP:
                return [self.vocab.ids["<swap>"], *swap]
            cut = cut_span(source, target)
            if cut and len(cut) <= min(MAX_CUT, len(target) - 1):
                return [self.vocab.ids["<cut>"], *cut]
        return target or [self.vocab.ids["<blank>"]]

    def _swap(self, source: list[int], target: list[int]) -> list[int]:
        """Return the token to replace and what replaces it, [] where one swap does not do it.

        A named slot is replaced wherever it stands; any other token must stand only once in the
        line. What is inserted is written with its right neighbour, or with its left one if that is
        a named slot.
        """
        limit = min(len(source), len(target))
        head = next((k for k in range(limit) if source[k] != target[k]), limit)
        if head < len(source) and self.vocab.is_named(source[head]):
            slot = source[head]
            count = len(places(source, slot, self.vocab.equals))
            extra, rest = divmod(len(target) - len(source), count)
            swapped = target[head : head + 1 + extra]
            if not rest and extra >= 0 and self.vocab.replaced(source, slot, swapped) == target:
                return [slot, *swapped]
        tail = 0
        while tail < limit - head and source[-1 - tail] == target[-1 - tail]:
            tail += 1
        middle = target[head : len(target) - tail]
        left = source[head - 1] if head else None
        right = source[len(source) - tail] if tail else None
        if len(source) - head - tail == 1 and source.count(source[head]) == 1:
            return [source[head], *middle]
        if (
            head + tail == len(source)
            and left is not None
            and self.vocab.is_named(left)
            and source.count(left) == 1
        ):
            return [left, left, *middle]
        if head + tail == len(source) and right is not None and source.count(right) == 1:
            return [right, *middle, right]
        return []
