"""The vocabulary of the edit codec: its special tokens, and text to tokens and back.

``tokenizer.json`` is an ordinary byte-level BPE with the special tokens of ``codec`` in front.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.engine.bounded_prompt import token_ids
from midstream.engine.byte_tokens import token_bytes
from midstream.engine.layout import Layout, replaced
from midstream.engine.slots import SlotPiece, SlotTable, code_pieces
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_INDENT_LEVEL = 11


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


def special_tokens(limits: CodecLimits) -> list[str]:
    """The special tokens in id order; ``<pad>`` is 0."""
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


class Vocabulary:
    """A tokenizer whose special tokens are those of ``special_tokens(limits)``.

    Attributes:
        limits: Sizes that the special tokens fix.
        ids: Special tokens by name.
        first_text_id: The first token of text; special tokens come before it.
        anchor_0: The anchor of the first line; the others follow.
        equals: Tokens that begin with an assignment's "=".
    """

    def __init__(self, tokenizer: Tokenizer, limits: CodecLimits | None = None) -> None:
        self.limits = limits or CodecLimits()
        self._tokenizer = tokenizer
        self._names = special_tokens(self.limits)
        self.ids = {name: i for i, name in enumerate(self._names)}
        for name in ("<pad>", "<end>", "<cut>", f"<v{self.limits.values}>"):
            if tokenizer.token_to_id(name) != self.ids[name]:
                raise UserError(
                    f"The tokenizer's {name} token is not where the edit codec expects it; "
                    "use the tokenizer.json that was exported with this model."
                )
        self.first_text_id = len(self.ids)
        self.size = tokenizer.get_vocab_size()
        self.end_id = self.ids["<end>"]
        self.new_id = self.ids["<new>"]
        self.anchor_0 = self.ids["<L1>"]
        self._cache: dict[str, list[int]] = {}
        self._bytes = [
            b"" if token < self.first_text_id else token_bytes(tokenizer, token)
            for token in range(self.size)
        ]
        self.equals = frozenset(
            k for k, text in enumerate(self._bytes) if text[:1] == b"=" and text[:2] != b"=="
        )

    @classmethod
    def load(cls, folder: Path) -> Vocabulary:
        """Read ``tokenizer.json`` and the ``[codec]`` table of ``midstream.toml`` from a model
        folder.
        """
        from tokenizers import Tokenizer

        card: dict[str, Any] = tomllib.loads((folder / "midstream.toml").read_text("utf-8"))
        table: dict[str, int] = card.get("codec", {})
        limits = CodecLimits(
            **{name: int(table[name]) for name in CodecLimits.__slots__ if name in table}
        )
        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")), limits)

    def special_name(self, token_id: int) -> str | None:
        """Name of a special token; None for a token of text."""
        return self._names[token_id] if token_id < self.first_text_id else None

    def decides(self, token_id: int) -> bool:
        """Whether a token says what changes; an anchor only says which line comes next."""
        return not self.anchor_0 <= token_id <= self.anchor_0 + self.limits.lines

    def bytes_of(self, token_id: int) -> bytes:
        return self._bytes[token_id]

    def is_single(self, text: str) -> bool:
        """Whether a piece of text is one token anyway (and needs no slot)."""
        return len(self.encode_text(text)) <= 1

    def encode_text(self, text: str) -> list[int]:
        found = self._cache.get(text)
        if found is None:
            found = token_ids(self._tokenizer, [text])
            if len(self._cache) < 200_000:
                self._cache[text] = found
        return found

    def encode_pieces(self, pieces: list[SlotPiece]) -> list[int]:
        ids: list[int] = []
        for text, slot in pieces:
            ids += [self.ids[slot]] if slot else self.encode_text(text)
        return ids

    def content(self, layout: Layout, table: SlotTable, line: str) -> list[int]:
        body = layout.strip(line)
        if body is None or (line and not body):
            return self.raw(line)
        text = body.lstrip(" ")
        lead = len(body) - len(text)
        ids: list[int] = []
        if lead and lead % 4 == 0 and lead <= 4 * MAX_INDENT_LEVEL:
            ids.append(self.ids[f"<in{lead // 4}>"])
            body = text
        for piece, slot in code_pieces(body, table):
            ids += [self.ids[slot]] if slot else self.encode_text(piece)
        return ids

    def raw(self, line: str) -> list[int]:
        """The tokens of a line as it is, without any check by the reader."""
        return [self.ids["<raw>"], *self.encode_text(line)]

    def text_of(self, table: SlotTable, ids: list[int]) -> str:
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
        named = self.is_named(slot)
        return replaced(ids, slot, new, self.equals if named else frozenset())

    def is_named(self, token: int) -> bool:
        return self.ids["<i1>"] <= token <= self.ids[f"<q{self.limits.phrases}>"]
