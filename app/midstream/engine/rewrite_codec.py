"""The codec of a model that reads a region in a fence, then a request, and writes the region anew.

The prompt is a conversation in chat marks: a user's message with the dedented region in a fence,
named after the language, and the request behind it. The region comes first, so its part of the
cache serves every request about it: it is read while the request is typed. A request without words
is the region alone. The answer is the new region in a fence of its own; the source is drafted, so
lines that stay cost little.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.engine.bounded_prompt import token_ids
from midstream.engine.byte_tokens import token_bytes
from midstream.engine.edit_request import EditRequest, corrected_request
from midstream.engine.layout import align, common_margin, split_lines
from midstream.engine.plan import EncodedRequest
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BEGIN: Final = "<|im_start|>"
END: Final = "<|im_end|>"
FENCE: Final = "```"
SPARE_TOKENS: Final = 256
"""Tokens that an answer may have beyond twice those of its region."""


class RewriteCodec:
    """Encodes requests to rewrite a region."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # A mark that stands in source code is text.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.vocab_size: int = tokenizer.get_vocab_size()
        begin, end = tokenizer.token_to_id(BEGIN), tokenizer.token_to_id(END)
        if begin is None or end is None:
            raise UserError(
                f"The tokenizer has no {BEGIN} and {END}; use the tokenizer.json that was exported "
                "with this model."
            )
        self._begin, self._end = begin, end
        self._special = frozenset(tokenizer.get_added_tokens_decoder())
        self._plain = lru_cache(8192)(partial(token_bytes, tokenizer))

    @classmethod
    def load(cls, folder: Path) -> RewriteCodec:
        """Load the tokenizer of a model folder."""
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")))

    def encode(self, request: EditRequest) -> EncodedRequest:
        """Encode a request."""
        request = corrected_request(request)
        lines, kept = split_lines(request.region), split_lines(request.kept)
        blank = next((k for k, line in enumerate(reversed(lines)) if line), len(lines))
        lines = lines[: len(lines) - blank]
        margin = common_margin(lines)
        region = self._ids("\n".join(_without(margin, line) for line in lines))
        words = self._ids(request.asked.strip())
        opening = f"{FENCE}{request.language}\n"
        prompt = [self._begin, *self._ids(f"user\n{opening}"), *region, *self._ids(f"\n{FENCE}\n")]
        # Without words, and with lines, there is only the region to read.
        if words or not lines:
            written = "".join(_without(margin, line) + "\n" for line in kept)
            prompt += [*words, self._end, *self._ids("\n"), self._begin]
            prompt += self._ids(f"assistant\n{opening}{written}")
        passed = [k + 1 for k, _ in align(lines, kept) if k is not None]
        rest = lines[max(passed, default=0) :]
        stops = {self._end}
        if FENCE not in request.region and len(fence := self._ids(FENCE)) == 1:
            stops.update(fence)
        draft = "".join(_without(margin, line) + "\n" for line in rest) + FENCE
        return EncodedRequest(
            prompt_ids=prompt,
            draft_ids=[*self._ids(draft), self._end],
            stop_ids=frozenset(stops),
            decoder=RewriteDecoder(self._bytes, frozenset(stops), margin, "\n" * blank),
            most=2 * len(region) + SPARE_TOKENS,
            text_of=self._text,
        )

    def _bytes(self, token: int) -> bytes:
        return b"" if token in self._special else self._plain(token)

    def _text(self, tokens: Sequence[int]) -> str:
        return b"".join(map(self._bytes, tokens)).decode("utf-8", "replace")

    def _ids(self, text: str) -> list[int]:
        return token_ids(self._tokenizer, [text])


def _without(margin: str, line: str) -> str:
    """Return a line without the margin; one that is blank as it is."""
    return line.removeprefix(margin) if line.strip(" \t") else line


class RewriteDecoder:
    """Turns the tokens of an answer into text with the region's margin; a ``plan.TextDecoder``.

    A line is shown as it is written, from where it cannot be the closing fence any more.
    """

    def __init__(
        self,
        bytes_of: Callable[[int], bytes],
        stop_ids: frozenset[int],
        margin: str = "",
        tail: str = "",
    ) -> None:
        """Decode one answer.

        Args:
            bytes_of: The bytes of a token, none for a special one.
            stop_ids: Tokens that end an answer.
            margin: What every line that is not blank begins with.
            tail: Empty lines at the region's end, which the model is not shown.
        """
        self._bytes_of = bytes_of
        self._stop_ids = stop_ids
        self._margin = margin
        self._tail = tail
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = ""
        self._shown = 0
        self._ended = False

    def feed(self, token_id: int) -> str:
        """Take one token; return the text that it makes certain."""
        if self._ended:
            return ""
        text = ""
        if token_id in self._stop_ids:
            self._open += self._utf8.decode(b"", True)
            last, self._open = self._open, ""
            return self._end("" if last in ("", FENCE) else self._placed(last))
        self._open += self._utf8.decode(self._bytes_of(token_id))
        *complete, self._open = self._open.split("\n")
        for line in complete:
            if line == FENCE:
                return self._end(text)
            text += self._placed(line)
        return text + self._begun()

    def finish(self) -> str:
        """End the answer. Adds nothing: what of the open line is held back is not certain."""
        self._ended = True
        return ""

    def _end(self, text: str) -> str:
        self._ended = True
        return text + self._tail

    def _begun(self) -> str:
        """Return what more of the open line can be shown."""
        line = self._open
        if not line.strip(" \t") or FENCE.startswith(line):
            return ""
        shown, self._shown = self._shown, len(self._margin) + len(line)
        return (self._margin + line)[shown:]

    def _placed(self, line: str) -> str:
        """Return the rest of a line that is complete."""
        shown, self._shown = self._shown, 0
        return (f"{self._margin}{line}\n" if line.strip(" \t") else f"{line}\n")[shown:]
