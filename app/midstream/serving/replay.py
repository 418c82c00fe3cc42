"""A scripted stand-in for a text model, at a given pace, for tests, screenshots and benchmarks.

A script file is a JSON list; the first entry whose ``match`` (a regular expression, searched
without regard to case)
fits the last instruction answers it:

    [
      {"match": "rename", "edit": [["old_name", "new_name"]], "rate": 1200},
      {"match": "docstring", "text": "def f():\\n    return 1\\n", "rate": 300, "delay": 0.05},
      {"match": "", "text": "…"}
    ]

``text`` is the answer as it is. ``edit`` is a list of [old, new] replacements that is applied to
the region of the request, so that the answer is a rewrite of whatever was sent. ``rate`` is in
tokens per second (absent or 0: as fast as possible), ``delay`` is the time before the first token
in seconds. Where the conversation already holds kept lines of the answer, the answer goes on after
them, as an edit model would.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from midstream.edits.request import parse_follow_up, parse_request
from midstream.engine.types import FinishReason, GenerateRequest, Piece, Usage
from midstream.errors import UnavailableError, UserError

_TOKEN = re.compile(r"\s*[A-Za-z0-9_]{1,6}|\s*[^\sA-Za-z0-9_]{1,2}|\s+")
_NAP_SECONDS = 0.02
"""How long a replay sleeps before it looks whether it was stopped."""

Answer = tuple[str, float, float]
"""Text, tokens per second (0 for no pacing), seconds before the first token."""


class ReplayScriptError(UnavailableError):
    """A script file that cannot be used; the sentence names the file and the fault."""

    code = "replay_script"


class NoAnswerError(UserError):
    """No entry of the script fits the instruction."""

    code = "replay_no_answer"


class ScriptEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a script file; see the module's description."""

    match: str = ""
    text: str | None = None
    edit: list[tuple[str, str]] | None = None
    rate: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplayScript:
    """The entries of a script file."""

    entries: tuple[ScriptEntry, ...]

    @classmethod
    def load(cls, path: Path) -> ReplayScript:
        """Read a script file.

        Raises:
            ReplayScriptError: It is missing or not as described.
        """
        try:
            entries = msgspec.json.decode(path.read_bytes(), type=list[ScriptEntry])
            for entry in entries:
                re.compile(entry.match)
                if (entry.text is None) == (entry.edit is None):
                    raise ValueError(f"the entry for {entry.match!r} needs either text or edit")
        except OSError as error:
            raise ReplayScriptError(
                f"The replay script {path} cannot be read: {error.strerror or error}."
            ) from error
        except (ValueError, re.error) as error:
            raise ReplayScriptError(f"The replay script {path} is not usable: {error}.") from error
        return cls(tuple(entries))

    def answer(self, request: GenerateRequest) -> Answer:
        """Return what the script says to a request.

        Raises:
            NoAnswerError: Nothing.
        """
        instruction = _instruction(request)
        for entry in self.entries:
            if re.search(entry.match, instruction, re.IGNORECASE):
                text = entry.text if entry.text is not None else _edit(request, entry.edit or [])
                return _after_kept(text, request), entry.rate, entry.delay
        raise NoAnswerError(f"The replay script has no answer to {instruction[:80]!r}.")


def _users(request: GenerateRequest) -> list[str]:
    return [message.text for message in request.messages if message.role == "user"]


def _instruction(request: GenerateRequest) -> str:
    last = next(reversed(_users(request)), "")
    region = parse_request(last)
    if region is not None:
        return region.instruction
    return parse_follow_up(last) or last


def _edit(request: GenerateRequest, replacements: list[tuple[str, str]]) -> str:
    regions = [found for text in _users(request) if (found := parse_request(text)) is not None]
    if not regions:
        raise NoAnswerError("The replay script edits a region, but the request holds none.")
    text = regions[-1].region
    for old, new in replacements:
        text = text.replace(old, new)
    return text


def _after_kept(text: str, request: GenerateRequest) -> str:
    """Drop the lines that the assistant already kept in answer to the last region."""
    kept = ""
    for message in request.messages:
        if message.role == "user" and parse_request(message.text) is not None:
            kept = ""
        elif message.role == "assistant":
            kept += message.text
    return "".join(text.splitlines(keepends=True)[kept.count("\n") :])


class ReplayGeneration:
    """Yields a text in tokens at a pace; stops within ``_NAP_SECONDS`` while it waits."""

    def __init__(self, text: str, rate: float, delay: float, request: GenerateRequest) -> None:
        self.usage = Usage(input_tokens=sum(count_tokens(m.text) for m in request.messages))
        self.finish_reason: FinishReason | None = None
        self._text = text if request.generate else ""
        self._rate = rate
        self._delay = delay
        self._limit = request.max_output_tokens
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def __iter__(self) -> Iterator[Piece]:
        began = time.perf_counter()
        self._pause(began + self._delay)
        self.usage.prefill_s = time.perf_counter() - began
        first = time.perf_counter()
        reason = FinishReason.STOP
        for token in _TOKEN.findall(self._text):
            if self._rate > 0:
                self._pause(first + self.usage.output_tokens / self._rate)
            if self._stopped.is_set():
                reason = FinishReason.STOPPED
                break
            if self._limit is not None and self.usage.output_tokens >= self._limit:
                reason = FinishReason.LENGTH
                break
            self.usage.output_tokens += 1
            self.usage.forwards += 1
            self.usage.decode_s = time.perf_counter() - first
            yield Piece(token, 1)
        self.usage.decode_s = time.perf_counter() - first
        self.finish_reason = reason

    def _pause(self, until: float) -> None:
        while not self._stopped.is_set() and (left := until - time.perf_counter()) > 0:
            self._stopped.wait(min(left, _NAP_SECONDS))


def count_tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


class ReplayModel:
    """A ``TextModel`` that answers from a script.

    Args:
        script: The answer, a function that makes it, or a loaded script file.
        rate: Tokens per second, 0 for as fast as possible; entries of a script file have their own.
        delay: Seconds before the first token.
        name: The model's name.
        facts: Facts instead of the default ones.
    """

    def __init__(
        self,
        script: Callable[[GenerateRequest], str] | str | ReplayScript,
        rate: float = 0.0,
        *,
        delay: float = 0.0,
        name: str = "replay",
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self._script = script
        self._rate = rate
        self._delay = delay
        self._name = name
        self._facts = facts or {
            "edit_format": "region",
            "max_region_lines": "2000",
            "languages": "any",
            "context_length": "1000000",
            "provider": "replay",
            "prompt": "replay",
        }

    @property
    def name(self) -> str:
        return self._name

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts

    def start(self, request: GenerateRequest) -> ReplayGeneration:
        """Look up the answer.

        Raises:
            NoAnswerError: The script has none.
        """
        text, rate, delay = "", self._rate, self._delay
        if request.generate:
            if isinstance(self._script, ReplayScript):
                text, rate, delay = self._script.answer(request)
            else:
                text = self._script if isinstance(self._script, str) else self._script(request)
        return ReplayGeneration(text, rate, delay, request)

    def close(self) -> None: ...
