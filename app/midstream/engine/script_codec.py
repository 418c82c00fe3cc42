"""The codec of a model that reads a numbered region, then a request, and writes an edit script.

The prompt is ``1|first line`` ... and the request in chat marks. The region comes first, so its
part of the cache serves every request about it: it is read while the request is typed, and a
redirect reads the new request and the script of the lines that stay. A request without words is the
region alone.

``ScriptChoice`` keeps greedy answers within the grammar of ``edit_script``; ``ScriptDrafter``
guesses that a changed line begins and goes on as the old one.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from midstream.engine.bounded_prompt import token_ids
from midstream.engine.byte_tokens import token_bytes
from midstream.engine.drafting import Drafter
from midstream.engine.edit_request import EditRequest, corrected_request
from midstream.engine.edit_script import (
    STEP,
    ScriptApplier,
    ScriptGrammar,
    ScriptRegion,
    ScriptState,
    numbered,
)
from midstream.engine.layout import split_lines
from midstream.engine.plan import EncodedRequest
from midstream.engine.script_code import LineRules, names_in
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Array = np.ndarray[Any, Any]

BEGIN: Final = "<|im_start|>"
END: Final = "<|im_end|>"
MAX_LINES: Final = 1_000
"""Lines of a region to which a correction may add one; the folder's limits are lower."""
CANDIDATES: Final = 24
"""Likeliest tokens to try before single characters are."""
SPARE_TOKENS: Final = 64
"""Tokens that a script may have beyond those of its region and request."""
MAX_REGIONS: Final = 8
"""LRU size of encoded regions; retries and redirects hit the same one."""
RESYNC: Final = 12
"""Old tokens that are searched for the place where a changed line goes on as before."""


class ScriptVocabulary:
    """A byte-level tokenizer as scripts need it.

    Attributes:
        size: How many tokens it knows.
        begin, end: The chat marks.
        marks: The tokens of single characters that scripts are made of, by character.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # A mark that stands in source code is text.
        tokenizer.encode_special_tokens = True
        self.size = tokenizer.get_vocab_size()
        begin, end = tokenizer.token_to_id(BEGIN), tokenizer.token_to_id(END)
        if begin is None or end is None:
            raise UserError(
                f"The tokenizer has no {BEGIN} and {END}; use the tokenizer.json that was exported "
                "with this model."
            )
        self.begin, self.end = begin, end
        self._special = frozenset(tokenizer.get_added_tokens_decoder())
        self._bytes = lru_cache(8192)(partial(token_bytes, tokenizer))
        self.marks = {char: self.encode(char)[0] for char in "0123456789|-+><*=?\n"}

    def encode(self, text: str) -> list[int]:
        return token_ids(self._tokenizer, [text])

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of a token; those of a special one are empty."""
        return b"" if token in self._special else self._bytes(token)


class EncodedRegion:
    """A region in tokens.

    Attributes:
        region: Its lines.
        ids: All tokens.
        rows: For each line, its tokens behind the number.
    """

    def __init__(self, vocab: ScriptVocabulary, lines: tuple[str, ...]) -> None:
        self.region = ScriptRegion.of(lines)
        self.ids = vocab.encode(numbered(self.region.rows))
        self.rows: list[list[int]] = [[]]
        numbering = True
        for token in self.ids:
            text = vocab.bytes_of(token)
            numbering = numbering and text.isdigit()
            if text == b"\n":
                self.rows.append([])
                numbering = True
            elif not numbering:
                self.rows[-1].append(token)
        self.rows.pop()
        if len(self.rows) != len(lines):  # a newline within a token: nothing to draft by
            self.rows = [[] for _ in lines]


class ScriptCodec:
    """Encodes requests; a ``prompts.RegionCodec``."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocab = ScriptVocabulary(tokenizer)
        self.vocab_size = self._vocab.size
        self.reading = ScriptReading(self._vocab)
        self._encoded = lru_cache(MAX_REGIONS)(partial(EncodedRegion, self._vocab))

    @classmethod
    def load(cls, folder: Path) -> ScriptCodec:
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")))

    def encode(self, request: EditRequest) -> EncodedRequest:
        """Encode a request."""
        request = corrected_request(request, MAX_LINES)
        vocab = self._vocab
        encoded = self._encoded(tuple(split_lines(request.region)))
        region = encoded.region
        asked = request.asked
        script, used = region.kept_script(split_lines(request.kept))
        words = vocab.encode(asked.strip())
        kept = vocab.encode(script) if script else []
        # Without words, and with lines, there is only the region to read.
        alone = bool(encoded.ids) and not words
        asking = [] if alone else [vocab.begin, *words, vocab.end, *kept]
        state = ScriptState("line" if kept else "start", passed=used, names=names_in(script))
        grammar = ScriptGrammar(region, state, LineRules(region.rows, asked))
        prompt = [*encoded.ids, *asking]
        return EncodedRequest(
            prompt_ids=prompt,
            draft_ids=[],
            stop_ids=frozenset({vocab.end}),
            decoder=ScriptDecoder(vocab, ScriptApplier(region, used)),
            most=len(prompt) + SPARE_TOKENS,
            choice=ScriptChoice(vocab, grammar),
            drafter=ScriptDrafter(vocab, encoded, asked, prompt, grammar.state),
        )


class _Utf8:
    """Tokens to text; a character is held back until its last byte is there."""

    def __init__(self, vocab: ScriptVocabulary) -> None:
        self._vocab = vocab
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        return self._decoder.decode(self._vocab.bytes_of(token))

    def finish(self) -> str:
        return self._decoder.decode(b"", True)


class ScriptDecoder:
    """Turns the tokens of a script into the text of the region; a ``plan.TextDecoder``."""

    def __init__(self, vocab: ScriptVocabulary, applier: ScriptApplier) -> None:
        self._end = vocab.end
        self._utf8 = _Utf8(vocab)
        self._applier = applier
        self._ended = False

    def feed(self, token_id: int) -> str:
        if self._ended:
            return ""
        if token_id != self._end:
            return self._applier.feed(self._utf8.feed(token_id))
        self._ended = True
        return self._applier.feed(self._utf8.finish()) + self._applier.finish()

    def finish(self) -> str:
        """End the answer. Adds nothing: the end mark has ended the script, and the open line of one
        that was cut is not certain.
        """
        self._ended = True
        return ""


class ScriptChoice:
    """Picks the likeliest token that the grammar allows; a ``plan.Choice``."""

    def __init__(self, vocab: ScriptVocabulary, grammar: ScriptGrammar) -> None:
        self._vocab = vocab
        self._grammar = grammar

    def pick(self, logits: Array) -> int:
        likeliest = int(logits.argmax())
        if self.allows(likeliest):
            return likeliest
        if self._allowed_by(self._grammar.without_rules(), likeliest):  # a slip in a line of code
            mending = self._vocab.encode(self._grammar.repair() or "")
            return mending[0] if mending and self.allows(mending[0]) else likeliest
        top = np.argpartition(logits, -CANDIDATES)[-CANDIDATES:]
        for token in map(int, top[np.argsort(-logits[top])]):
            if self.allows(token):
                return token
        single = sorted((*self._vocab.marks.values(), self._vocab.end), key=lambda t: -logits[t])
        return next((token for token in single if self.allows(token)), self._vocab.end)

    def allows(self, token: int) -> bool:
        """Whether a token may come next."""
        return self._allowed_by(self._grammar, token)

    def feed(self, token: int) -> None:
        text = self._text(token)
        state = self._grammar.after(text) or self._grammar.without_rules().after(text)
        if state is not None and text:
            self._grammar.state = state

    def _allowed_by(self, grammar: ScriptGrammar, token: int) -> bool:
        if token == self._vocab.end:
            return grammar.may_end()
        text = self._text(token)
        return bool(text) and grammar.after(text) is not None

    def _text(self, token: int) -> str:
        # A part of a character counts as one: it stands in content only.
        return self._vocab.bytes_of(token).decode("utf-8", "replace")


class ScriptDrafter:
    """Guesses the tokens of a script; a ``plan.Proposer``.

    Behind a line's number comes the old line, from the place up to which the new one has followed
    it. Behind a line that is put in comes another one at the same place, indented as code is. What
    is in neither, text that is put in, is looked up in the prompt.
    """

    def __init__(
        self,
        vocab: ScriptVocabulary,
        encoded: EncodedRegion,
        asked: str,
        prompt: Sequence[int],
        state: ScriptState,
    ) -> None:
        self._vocab = vocab
        self._rows = encoded.rows
        self._grammar = ScriptGrammar(encoded.region, state)
        self._first = _likely_row(encoded.region.rows, asked) if state.at == "start" else None
        self._lookup = Drafter((), prompt)
        self._row: list[int] | None = None
        self._at = 0
        self._strange = 0
        self._moved = ""
        self._inserted: tuple[int, str] | None = None
        """The line that was put in last, behind the row with this number."""

    def propose(self, most: int) -> list[int]:
        return list(islice(self._ahead(), max(0, most)))

    def learn(self, output: Sequence[int]) -> None:
        for token in output:
            self._follow(token)
        self._lookup.learn(output)

    def _ahead(self) -> Iterator[int]:
        state, row = self._grammar.state, self._row
        if row is not None:
            # One token for another is the commonest change.
            at = self._at + (self._strange == 1)
            if self._strange <= 1:
                yield from row[at:]
                yield self._vocab.end
            else:
                yield from self._lookup.propose(RESYNC)
        elif state.at == "start" and self._first is not None:
            yield from self._line(self._first)
        elif state.at == "plus":
            number = int(state.number)
            above = self._grammar.region.rows[number - 1] if number else ""
            if self._inserted is not None and self._inserted[0] == number:
                above = self._inserted[1]
            yield from self._insertion(number, above, len(state.number) + 1)
        elif (
            state.at in ("line", "number")
            and self._inserted is not None
            and str(self._inserted[0]).startswith(state.number)
        ):
            yield from self._insertion(*self._inserted, len(state.number))
        elif state.at == "number":
            yield from self._rows[int(state.number) - 1] if int(state.number) else ()
            yield self._vocab.end
        elif state.at == "line" and self._moved and state.passed < len(self._rows):
            for number in range(state.passed + 1, len(self._rows) + 1):
                yield from self._marks(f"{number}{self._moved}\n")
        elif state.at == "closed" and self._moved in (">", "<"):
            yield from self._marks("\n")
        elif state.at == "content" and state.text.endswith(":"):
            yield from self._marks("\n")
            yield from self._insertion(int(state.number), state.text)
        elif state.at in ("content", "closed"):
            yield from self._lookup.propose(RESYNC) or [self._vocab.end]
        elif state.at in ("old", "new"):
            yield from self._lookup.propose(RESYNC)

    def _line(self, number: int) -> Iterator[int]:
        yield from self._marks(str(number))
        yield from self._rows[number - 1]
        yield self._vocab.end

    def _insertion(self, behind: int, above: str, given: int = 0) -> Iterator[int]:
        """A line put in behind a row up to its first word; some characters of it are given.

        Its indentation is that of the line above, or deeper where a block begins there.
        """
        yield from self._marks(f"{behind}+|"[given:])
        deeper = len(STEP) if above.rstrip().endswith(":") else 0
        spaces = len(above) - len(above.lstrip(" ")) + deeper
        # The last space belongs to the word behind it.
        yield from self._vocab.encode(" " * spaces + "x")[:-1]

    def _marks(self, text: str) -> Iterator[int]:
        return (self._vocab.marks[char] for char in text)

    def _follow(self, token: int) -> None:
        before = self._grammar.state
        text = self._vocab.bytes_of(token).decode("utf-8", "replace")
        state = self._grammar.after(text) if text else None
        if state is None:
            self._row = None
            return
        self._grammar.state = state
        if state.at == "line" and before.at == "content":
            inserted = self._row is None and not before.replaces
            self._inserted = (state.passed, before.text) if inserted else None
        if state.at == "closed":
            self._moved = text
        elif state.at in ("content", "plus"):
            self._moved = ""
        if before.at == "number" and state.at == "content":
            self._row, self._at, self._strange = self._rows[int(state.number) - 1], 0, 0
        if self._row is None:
            return
        if state.at != "content":
            self._row = None
            return
        row, at = self._row, self._at
        for place in range(at, min(at + RESYNC, len(row))):
            if row[place] == token:
                self._at, self._strange = place + 1, 0
                return
        self._strange += 1


_WORD = re.compile(r"[^\W\d]\w*")


def _likely_row(rows: Sequence[str], asked: str) -> int | None:
    """Return the number of the line that shares the rarest words with a request, if any does."""
    words = [frozenset(_WORD.findall(row)) for row in rows]
    said = frozenset(_WORD.findall(asked))
    places = {word: [k for k, row in enumerate(words, 1) if word in row] for word in said}
    scores: dict[int, float] = {}
    for found in places.values():
        for number in found:
            scores[number] = scores.get(number, 0.0) + 1 / len(found)
    return max(scores, key=lambda number: (scores[number], -number), default=None)


class ScriptReading:
    """What is read off the tokens of a script to judge it; a ``confidence.AnswerFacts``."""

    def __init__(self, vocab: ScriptVocabulary) -> None:
        self._vocab = vocab

    def gave_up(self, tokens: Sequence[int]) -> bool:
        return bool(tokens) and tokens[0] == self._vocab.marks["?"]

    def features(
        self, chances: Array, tokens: Sequence[int], draft: Sequence[int]
    ) -> dict[str, float]:
        """Return features of the tokens' log-probabilities, which are at least one.

        ``opening``: of the first token; ``mean`` of all; ``least``: the lowest; ``places``: the sum
        over line numbers and actions; ``text``: the sum over what is written.
        """
        numbers = np.zeros(len(tokens), bool)
        behind = True
        for index, token in enumerate(tokens):
            text = self._vocab.bytes_of(token)
            numbers[index] = behind
            if text == b"\n":
                behind = True
            elif text[:1] in (b"|", b"-", b">", b"<", b"*", b"=", b"?"):
                behind = False
        where, what = float(chances[numbers].sum()), float(chances[~numbers].sum())
        return {
            "opening": float(chances[0]),
            "mean": float(chances.mean()),
            "least": float(chances.min()),
            "places": where,
            "text": what,
        }
