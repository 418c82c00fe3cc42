"""Cost and effect of moved KV cache rows, for ``midstream bench engine --texts FOLDER``.

Conversations are made of Markdown files: a turn quotes the first words of a passage, and the answer
is how it goes on. The oldest turns are dropped, and the next answer, which is given, follows three
prompts: one that is read afresh, one whose rows are moved (``engine.prefix_cache``), and the one
with nothing dropped. The loss of its tokens tells how well each of them predicts it. In a last case
nothing is dropped, but a file stands in front of the newest question only, so that its rows move
behind the turn before; there the answer is a passage of the file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

import numpy as np

from midstream.bench.progress import BenchProgress
from midstream.engine.loop import PREFILL_CHUNK
from midstream.engine.model import OnnxModel
from midstream.engine.prompts import load_tokenizer
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CASES: dict[str, tuple[int, int] | None] = {
    "1 of 4 turns dropped": (1, 3),
    "1 of 7": (1, 6),
    "3 of 7": (3, 4),
    "5 of 7": (5, 2),
    "1 of 4, for the fourth time": (-4, 3),
    "a file moves behind a turn": None,
}
"""Turns that are dropped, one by one where negative, and turns that are kept; None for the file."""
TURNS = 8
"""Passages of a conversation."""
CONVERSATIONS = 20
"""Conversations that are measured at most, spread over all there are."""
MIN_LINES, MAX_LINES = 130, 220
"""Tokens of a passage."""
QUOTED = 6
"""Words of a passage that its question quotes."""
ANSWER = 40
"""Tokens of an answer that is written, greedily."""
GIVEN = 150
"""Tokens of the given answer, at most."""
INSTRUCTIONS = "You answer questions about a program and its documentation."


@dataclass(frozen=True, slots=True)
class DroppedTurns:
    """One case; "fresh", "moved" and "whole" are the three prompts.

    Attributes:
        conversations: How many there were.
        tokens: Of the shortened prompt, on average.
        read: Tokens of it that were run, on average.
        cpu_ms: Processor time of that, the median.
        loss: Of a token of the given answer, in nats, averaged over conversations.
        worse: How much larger the loss is with moved rows than fresh, as a share.
        deviation: Standard error of that share.
        same: Share of equal answers, of two prompts.
    """

    conversations: int
    tokens: float
    read: dict[str, float]
    cpu_ms: dict[str, float]
    loss: dict[str, float]
    worse: float
    deviation: float
    same: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Case:
    """A last question.

    Attributes:
        earlier: What was read before, one behind the other, as tokens.
        prompt: What is read for it.
        whole: The same with nothing dropped.
        last: The passage that it is about.
    """

    earlier: list[list[int]]
    prompt: list[int]
    whole: list[int]
    last: str


@dataclass(slots=True)
class _Seen:
    """A prompt: what it cost, and what follows it."""

    tokens: int
    read: int
    cpu: float
    loss: float
    written: list[int]


def dropped_turns(
    model: OnnxModel, texts: Path, progress: BenchProgress
) -> dict[str, DroppedTurns]:
    """Measure all cases on the Markdown files of a folder.

    Raises:
        UserError: They do not make a conversation.
    """
    bench = _Bench(model)
    conversations = list(bench.conversations(texts))
    if not conversations:
        raise UserError(f"{texts} has no Markdown file of {TURNS} passages; name another folder.")
    step = max(1.0, len(conversations) / CONVERSATIONS)
    count = min(len(conversations), CONVERSATIONS)
    conversations = [conversations[int(step * number)] for number in range(count)]
    found: dict[str, DroppedTurns] = {}
    with progress.stoppable():
        for name, case in CASES.items():
            make = bench.with_file if case is None else partial(bench.dropped, *case)
            seen = [bench.compare(make(each)) for each in progress.over(conversations)]
            found[name] = _summary(seen)
    model.cache.clear()
    return found


class _Bench:
    def __init__(self, model: OnnxModel) -> None:
        self._model = model
        self._decoder, self._cache = model.decoder, model.cache
        self._tokenizer: Tokenizer = load_tokenizer(model.folder)
        # Several cases have the same prompt.
        self._seen: dict[tuple[int, ...], _Seen] = {}

    def conversations(self, texts: Path) -> Iterator[list[str]]:
        """Yield passages of one file, as many as there are turns."""
        for path in sorted(texts.glob("*.md")):
            passages, text = list[str](), ""
            for paragraph in re.split(r"\n\s*\n", path.read_text("utf-8")):
                text = f"{text}\n\n{paragraph}".strip()
                ids = self._ids(text)
                if len(ids) >= MIN_LINES:
                    passages.append(str(self._tokenizer.decode(ids[:MAX_LINES])))
                    text = ""
            for begin in range(0, len(passages) - TURNS + 1, TURNS // 4):
                yield passages[begin : begin + TURNS]

    def dropped(self, drop: int, keep: int, passages: list[str]) -> _Case:
        """The last question of a conversation that has lost its oldest turns."""
        before, last = passages[:-1][-abs(drop) - keep :], passages[-1]
        earlier: list[list[int]] = []
        for end in range(keep, len(before)) if drop < 0 else [len(before) - 1]:
            turns = before[end - keep : end] if drop < 0 else before[:end]
            earlier.append(self._prompt(turns, before[end], answered=True))
        return _Case(earlier, self._prompt(before[-keep:], last), self._prompt(before, last), last)

    def with_file(self, passages: list[str]) -> _Case:
        """The second question about a file, which goes along with the newest question only."""
        turns, asked, last = passages[:2], passages[2], passages[4]
        file = "\n\n".join(passages[3:6]) + "\n\n"
        earlier = self._prompt(turns, asked, file=file, answered=True)
        prompt = self._prompt([*turns, asked], last, file=file)
        return _Case([earlier], prompt, prompt, last)

    def compare(self, case: _Case) -> dict[str, _Seen]:
        """Answer behind the three prompts."""
        found: dict[str, _Seen] = {}
        for kind, prompt in (("fresh", case.prompt), ("whole", case.whole)):
            if (seen := self._seen.get(tuple(prompt))) is None:
                self._cache.clear()
                seen = self._seen[tuple(prompt)] = self._follow(prompt, case.last)
            found[kind] = seen
        self._cache.clear()
        for prompt in case.earlier:
            self._read(prompt, moved=True)
        found["moved"] = self._follow(case.prompt, case.last, moved=True)
        return found

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _prompt(
        self, turns: Sequence[str], last: str, *, file: str = "", answered: bool = False
    ) -> list[int]:
        messages: list[Message] = []
        for passage in turns:
            messages += [Message("user", _question(passage)), Message("assistant", _rest(passage))]
        messages.append(Message("user", file + _question(last)))
        prompt = self._model.plan(GenerateRequest(tuple(messages), INSTRUCTIONS)).prompt_ids
        return prompt + self._ids(_rest(last)) if answered else prompt

    def _read(self, prompt: list[int], *, moved: bool = False) -> int:
        known = self._cache.open(prompt, moved=moved)
        for at in range(known, len(prompt), PREFILL_CHUNK):
            chunk = prompt[at : at + PREFILL_CHUNK]
            self._decoder.fill(chunk, at)
            self._cache.extend(chunk)
        return known

    def _follow(self, prompt: list[int], last: str, *, moved: bool = False) -> _Seen:
        past, given = len(prompt) - 1, self._ids(_rest(last))[:GIVEN]
        began = time.process_time()
        known = self._read(prompt[:-1], moved=moved)
        cpu = time.process_time() - began
        logits = self._decoder.run([prompt[-1], *given[:-1]], past).astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        norms = np.log(np.exp(logits).sum(-1))
        loss = float((norms - logits[np.arange(len(given)), given]).mean())
        written = [prompt[-1]]
        for at in range(past, past + ANSWER):
            written.append(int(self._decoder.run(written[-1:], at)[0].argmax()))
        return _Seen(len(prompt), past - known, cpu, loss, written)


def _question(passage: str) -> str:
    return f'What is written behind "{" ".join(passage.split(" ")[:QUOTED])}"?'


def _rest(passage: str) -> str:
    return " ".join(passage.split(" ")[QUOTED:])


def _summary(seen: Sequence[dict[str, _Seen]]) -> DroppedTurns:
    def mean(name: str, kind: str) -> float:
        return fmean(getattr(each[kind], name) for each in seen)

    def same(one: str, other: str) -> float:
        return fmean(each[one].written == each[other].written for each in seen)

    loss = {kind: mean("loss", kind) for kind in ("fresh", "moved", "whole")}
    gaps = [each["moved"].loss - each["fresh"].loss for each in seen]
    error = stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
    return DroppedTurns(
        len(seen),
        mean("tokens", "fresh"),
        {kind: mean("read", kind) for kind in ("fresh", "moved")},
        {kind: 1000 * median(each[kind].cpu for each in seen) for kind in ("fresh", "moved")},
        loss,
        fmean(gaps) / loss["fresh"],
        error / loss["fresh"],
        {"moved, fresh": same("moved", "fresh"), "whole, fresh": same("whole", "fresh")},
    )
