"""The bytes that the tokens of a byte-level BPE stand for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@cache
def byte_table() -> dict[str, int]:
    """Return the byte that each letter of a byte-level vocabulary stands for.

    Source: ``bytes_to_unicode`` of GPT-2's encoder.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in printable}
    rest = (byte for byte in range(256) if byte not in printable)
    return table | {chr(256 + extra): byte for extra, byte in enumerate(rest)}


def token_bytes(tokenizer: Tokenizer, token: int) -> bytes:
    """Return the bytes of one token that is not special."""
    table = byte_table()
    return bytes(table[char] for char in tokenizer.id_to_token(token) or "")
