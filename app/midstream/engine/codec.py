"""The edit codec: how a region rewrite is written for a small edit model, and read back.

A small model fails at copying long names and long stretches of code, so the codec makes both
trivial while the text on the wire stays a plain rewrite of the region:

- *names*: what the instruction names becomes `<i1>`, `<i2>`... (identifiers, numbers) or `<q1>`...
  (quoted or backticked code and phrases); every other name, comment or piece of a string that would
  need more than one token becomes `<v1>`, `<v2>`... The decoder puts the text back.
- *lines*: the region is dedented and every source line begins with an anchor, `<L1>`, `<L2>`... In
  the answer an anchor alone means "this line as it was", anchor + `<ind>` / `<ded>` the same line
  one level deeper or shallower, anchor + `<swap>` + slot + content the same line with that content
  wherever the slot stands, anchor + `<cut>` + first + last + content the same line with that
  content in place of the tokens from first to last, anchor + content replaces the line, `<new>` +
  content inserts one, and a skipped anchor deletes its line. `<end>` gives up: the rest stays as it
  was.
- *redirects*: what was asked while an answer was being written takes the place of the first
  instruction, or is appended behind the lines that stay, so that all before it is still in the
  cache: `<ins>` first `<src>` region `<tgt>` kept lines `<ins>` second `<tgt>` rest.

Everything is lossless for any text; `tokenizer.json` is an ordinary byte-level BPE with these extra
tokens. The codec knows nothing of ONNX graphs or of where the region comes from.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from midstream.engine.additions import joined
from midstream.engine.codec_choice import AnswerChoice
from midstream.engine.codec_lines import (
    Layout,
    align,
    common_margin,
    deeper,
    next_line,
    shallower,
    split_lines,
)
from midstream.engine.codec_spans import cut_span, places, replaced
from midstream.engine.codec_stream import StreamDecoder
from midstream.engine.corrections import corrected_request
from midstream.engine.line_check import fitted, may_come
from midstream.engine.slots import (
    Piece,
    SlotTable,
    code_pieces,
    instruction_pieces,
    later_pieces,
)
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from midstream.guard.correction import CorrectionRequest

MAX_INDENT_LEVEL = 11
MAX_SWAP = 14
"""Most tokens that follow a `<swap>`."""
MAX_CUT = 32
"""Most tokens that follow a `<cut>`."""


class RegionTooLong(UserError):  # noqa: N818 - reads as the sentence it raises
    """The region has more lines or tokens than this model can rewrite at once."""


@dataclass(frozen=True, slots=True)
class EditRequest:
    """What a model is asked to rewrite.

    Attributes:
        instruction: what to do, in words.
        region: the source text of the region: whole lines, each ended by a newline.
        before: context lines above the region (this codec does not read them).
        after: context lines below the region (this codec does not read them).
        path: the file's path (this codec does not read it).
        kept: whole lines of the rewrite that are already written and stay (stop, redirect); "" at
            first.
        earlier: instructions under which `kept` was written. Where the model takes appended
            redirects (`CodecLimits.appended`), the newest of them stands before the source and
            `instruction` behind the kept lines; else `instruction` stands before the source,
            together with the newest of them if it asks for more.
        correction: what `instruction` asks for, where the guard wrote it.
    """

    instruction: str
    region: str
    before: str = ""
    after: str = ""
    path: str = ""
    kept: str = ""
    earlier: tuple[str, ...] = ()
    correction: CorrectionRequest | None = None


@dataclass(frozen=True, slots=True)
class EncodedEdit:
    """A request in tokens.

    Attributes:
        prompt_ids: everything up to where generation starts, the kept lines included.
        draft_ids: what the rest of the target would be if nothing more changed (ends with a stop
            token).
        stop_ids: tokens that end the rewrite.
        decoder: turns generated tokens into text; made for this one request.
        choice: chooses among the likeliest tokens; made for this one request, too.
    """

    prompt_ids: list[int]
    draft_ids: list[int]
    stop_ids: frozenset[int]
    decoder: StreamDecoder
    choice: AnswerChoice


@dataclass(frozen=True, slots=True)
class CodecLimits:
    """Sizes that the tokenizer's special tokens fix."""

    lines: int = 64
    names: int = 7
    phrases: int = 6
    values: int = 64
    appended: int = 1
    """Whether a redirect is appended behind the kept lines (1), or read first, in place of what was
    asked before (0)."""


@dataclass(frozen=True, slots=True)
class _Head:
    """A prompt up to its first `<tgt>`, which says nothing yet of what is written already."""

    layout: Layout
    table: SlotTable
    ids: tuple[int, ...]


MOST_HEADS = 8
"""So many heads are kept: what is asked, stopped and asked in other words is about one region."""


def special_tokens(limits: CodecLimits) -> list[str]:
    """Return the codec's special tokens in id order (they follow `<pad>` = 0)."""
    return [
        *(
            "<pad>",
            "<ins>",
            "<src>",
            "<tgt>",
            "<end>",
            "<new>",
            "<blank>",
            "<raw>",
            "<ind>",
            "<ded>",
        ),
        *(f"<in{k}>" for k in range(1, MAX_INDENT_LEVEL + 1)),
        "<cut>",
        *(f"<L{k}>" for k in range(1, limits.lines + 2)),
        *(f"<i{k}>" for k in range(1, limits.names + 1)),
        "<swap>",
        *(f"<q{k}>" for k in range(1, limits.phrases + 1)),
        *(f"<v{k}>" for k in range(1, limits.values + 1)),
    ]


class EditCodec:
    """Encodes requests and training targets; makes the decoder that reads the model's answer."""

    def __init__(self, tokenizer: Tokenizer, limits: CodecLimits | None = None) -> None:
        """Wrap a tokenizer whose special tokens are those of `special_tokens(limits)`."""
        self.limits = limits or CodecLimits()
        self._tokenizer = tokenizer
        self._names = special_tokens(self.limits)
        self._id = {name: i for i, name in enumerate(self._names)}
        for name in ("<pad>", "<end>", "<cut>", f"<v{self.limits.values}>"):
            if tokenizer.token_to_id(name) != self._id[name]:
                raise UserError(
                    f"The tokenizer's {name} token is not where the edit codec expects it; "
                    "use the tokenizer.json that was exported with this model."
                )
        self.first_text_id = len(self._id)
        self.vocab_size = tokenizer.get_vocab_size()
        self.end_id = self._id["<end>"]
        self.new_id = self._id["<new>"]
        self.anchor_0 = self._id["<L1>"]
        self._cache: dict[str, list[int]] = {}
        self._known_head = lru_cache(MOST_HEADS)(partial(self._head, shuffle=None))
        self._bytes = _token_bytes(tokenizer, self.first_text_id)
        self.equals = frozenset(
            k for k, text in enumerate(self._bytes) if text[:1] == b"=" and text[:2] != b"=="
        )

    @classmethod
    def load(cls, folder: Path) -> EditCodec:
        """Read `tokenizer.json` and the `[codec]` table of `midstream.toml` from a model folder."""
        from tokenizers import Tokenizer

        facts: dict[str, Any] = tomllib.loads((folder / "midstream.toml").read_text("utf-8"))
        table: dict[str, int] = facts.get("codec", {})
        limits = CodecLimits(
            **{name: int(table[name]) for name in CodecLimits.__slots__ if name in table}
        )
        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")), limits)

    def encode(self, request: EditRequest) -> EncodedEdit:
        """Encode a request.

        Raises:
            RegionTooLong: the region has more lines than the model has anchors.
        """
        layout, table, prompt, used = self._prompt(
            corrected_request(request, self.limits.lines), None
        )
        anchors = [self.anchor_0 + k for k in range(used, len(layout.lines) + 1)]
        kept = tuple(split_lines(request.kept))
        return EncodedEdit(
            prompt_ids=prompt,
            draft_ids=anchors,
            stop_ids=frozenset({self.end_id, self.anchor_0 + len(layout.lines)}),
            decoder=StreamDecoder(self, layout, table, used, kept),
            choice=AnswerChoice(self, layout, table, used, kept),
        )

    def encode_target(
        self, request: EditRequest, target: str | None, *, shuffle: Random | None = None
    ) -> tuple[list[int], list[int]]:
        """Encode a request together with its answer, in canonical form.

        Args:
            request: the request; `kept` must be a prefix of `target` made of whole lines.
            target: the whole rewritten region, kept lines included; None: the model gives up.
            shuffle: in training, a source of randomness for anchor offsets and slot numbers.

        Returns:
            `(prompt_ids, target_ids)`; the prompt includes the kept lines, the target ends with its
            stop token.

        Raises:
            RegionTooLong: as in `encode`.
            ValueError: `kept` is not a prefix of `target`.
        """
        layout, table, prompt, used = self._prompt(request, shuffle)
        if target is None:
            return prompt, [self.end_id]
        if not target.startswith(request.kept):
            raise ValueError("kept is not a prefix of target")
        rest = split_lines(target[len(request.kept) :])
        kept = split_lines(request.kept)
        rest_ids, _ = self._target(layout, table, rest, used, kept, prefix=False)
        stop = self.anchor_0 + layout.first_anchor + len(layout.lines)
        return prompt, [*rest_ids, stop]

    def _prompt(
        self, request: EditRequest, shuffle: Random | None
    ) -> tuple[Layout, SlotTable, list[int], int]:
        """Return (layout, table, prompt tokens, source lines that the kept lines use up)."""
        region = request.region
        appended = self.limits.appended and request.kept and request.earlier
        first = request.instruction
        if appended:
            first = request.earlier[-1]
        elif request.earlier:
            first = joined(request.earlier[-1], request.instruction)
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
            ids += [self._id["<ins>"], *self._pieces(words), self._id["<tgt>"]]
        return layout, table, ids, used

    def _head(self, instruction: str, region: str, *, shuffle: Random | None) -> _Head:
        lines = split_lines(region)
        if len(lines) > self.limits.lines:
            raise RegionTooLong(
                f"The region has {len(lines)} lines and this model rewrites at most "
                f"{self.limits.lines} at once; select a smaller part."
            )
        layout = Layout(common_margin(lines), lines)
        if shuffle is not None:
            layout.first_anchor = shuffle.randrange(self.limits.lines - len(lines) + 1)
        table = SlotTable(
            self.limits.names, self.limits.phrases, self.limits.values, self.is_single, shuffle
        )
        words = instruction_pieces(instruction, region, table)
        table.add_region([layout.strip(line) or "" for line in lines])
        ids = [self._id["<ins>"], *self._pieces(words), self._id["<src>"]]
        for number, line in enumerate(lines):
            ids.append(self.anchor_0 + layout.first_anchor + number)
            ids += self.content(layout, table, line)
        ids.append(self.anchor_0 + layout.first_anchor + len(lines))
        ids.append(self._id["<tgt>"])
        return _Head(layout, table, tuple(ids))

    def _pieces(self, pieces: list[Piece]) -> list[int]:
        ids: list[int] = []
        for text, slot in pieces:
            ids += [self._id[slot]] if slot else self._text(text)
        return ids

    def is_single(self, text: str) -> bool:
        """Whether a piece of text is one token already (and so needs no slot)."""
        return len(self._text(text)) <= 1

    def _text(self, text: str) -> list[int]:
        found = self._cache.get(text)
        if found is None:
            found = list(self._tokenizer.encode(text, add_special_tokens=False).ids)
            if len(self._cache) < 200_000:
                self._cache[text] = found
        return found

    def special_name(self, token_id: int) -> str | None:
        """Return the name of a special token, None for a token of text."""
        return self._names[token_id] if token_id < self.first_text_id else None

    def decides(self, token_id: int) -> bool:
        """Whether a token says what changes; an anchor only says which line comes next."""
        return not self.anchor_0 <= token_id <= self.anchor_0 + self.limits.lines

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes that a token of text stands for."""
        return self._bytes[token_id]

    def content(self, layout: Layout, table: SlotTable, line: str) -> list[int]:
        """Return the tokens of one line."""
        body = layout.strip(line)
        if body is None or (line and not body):
            return self._raw(line)
        text = body.lstrip(" ")
        lead = len(body) - len(text)
        ids: list[int] = []
        if lead and lead % 4 == 0 and lead <= 4 * MAX_INDENT_LEVEL:
            ids.append(self._id[f"<in{lead // 4}>"])
            body = text
        for piece, slot in code_pieces(body, table):
            ids += [self._id[slot]] if slot else self._text(piece)
        return ids

    def _raw(self, line: str) -> list[int]:
        """Return the tokens of a line as it is, unchecked by whoever reads them."""
        return [self._id["<raw>"], *self._text(line)]

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
        """Encode target lines, which follow `kept`, against the source lines from `used` on.

        With `prefix` the lines are the start of an answer, so that source lines after the last
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
                content = self.content(layout, table, line) if sound else self._raw(line)
                ids += [self.new_id, *content]
                continue
            consumed = src + 1
            ids.append(self.anchor_0 + layout.first_anchor + used + src)
            old = source[src]
            if line == old:
                continue
            if line == deeper(layout, old):
                ids.append(self._id["<ind>"])
            elif line == shallower(layout, old):
                ids.append(self._id["<ded>"])
            else:
                above = [*kept, *lines[:number]]
                ids += self._changed(layout, table, used + src, line, above)
        return ids, used + consumed if prefix else len(layout.lines)

    def _changed(
        self, layout: Layout, table: SlotTable, at: int, new: str, above: list[str]
    ) -> list[int]:
        """Return the tokens after an anchor for a line that becomes another line."""
        old = layout.lines[at]
        source, target = self.content(layout, table, old), self.content(layout, table, new)
        if not may_come(new, old, above=above, source=layout.lines, used=at + 1):
            return self._raw(new)
        if target and self._id["<raw>"] not in (*source, *target):  # a swap keeps the indentation
            swap = self._swap(source, target)
            if swap and len(swap) <= MAX_SWAP:
                return [self._id["<swap>"], *swap]
            cut = cut_span(source, target)
            if cut and len(cut) <= min(MAX_CUT, len(target) - 1):
                return [self._id["<cut>"], *cut]
        return target or [self._id["<blank>"]]

    def _swap(self, source: list[int], target: list[int]) -> list[int]:
        """Return the token to replace and what replaces it, [] where one swap does not do it.

        A named slot is replaced wherever it stands; any other token must stand only once in the
        line. What is inserted is written with its right neighbour, or with its left one if that is
        a named slot.
        """
        limit = min(len(source), len(target))
        head = next((k for k in range(limit) if source[k] != target[k]), limit)
        if head < len(source) and self._is_named(source[head]):
            slot = source[head]
            count = len(places(source, slot, self.equals))
            extra, rest = divmod(len(target) - len(source), count)
            swapped = target[head : head + 1 + extra]
            if not rest and extra >= 0 and self.replaced(source, slot, swapped) == target:
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
            and self._is_named(left)
            and source.count(left) == 1
        ):
            return [left, left, *middle]
        if head + tail == len(source) and right is not None and source.count(right) == 1:
            return [right, *middle, right]
        return []

    def text_of(self, table: SlotTable, ids: list[int]) -> str:
        """Return the text of a line's tokens, without the margin."""
        parts: list[bytes] = []
        for token in ids:
            name = self.special_name(token)
            if name is None:
                parts.append(self.bytes_of(token))
            elif name[:3] == "<in" and name[3:-1].isdigit():
                parts.append(b"    " * int(name[3:-1]))
            else:
                parts.append((table.text_of(name) or "").encode())
        return b"".join(parts).decode("utf-8", "replace")

    def replaced(self, ids: list[int], slot: int, new: list[int]) -> list[int]:
        """Return the tokens of a line after a swap."""
        named = self._is_named(slot)
        return replaced(ids, slot, new, self.equals if named else frozenset())

    def _is_named(self, token: int) -> bool:
        return self._id["<i1>"] <= token <= self._id[f"<q{self.limits.phrases}>"]


def _token_bytes(tokenizer: Tokenizer, first: int) -> list[bytes]:
    """Return the bytes that each text token stands for (b"" for special tokens)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in printable}
    extra = 0
    for b in range(256):
        if b not in printable:
            table[chr(256 + extra)] = b
            extra += 1
    return [
        b"" if i < first else bytes(table[ch] for ch in tokenizer.id_to_token(i) or "")
        for i in range(tokenizer.get_vocab_size())
    ]
