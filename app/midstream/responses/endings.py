"""How an answer ends: the one place that decides whether it is complete.

A server says with a word why it stopped, and every API and every company has other words; gateways
pass on the words of others. An answer is complete only after a word that is known to say so.
Everything else is cut, with the reason in words: a limit, a filter, a failure, an unknown word, and
a stream that closes without any. The first word that says that it was cut counts, whatever a
gateway adds; whether the edit's own format has ended is looked at where it is parsed.
"""

from __future__ import annotations

from typing import Final

COMPLETE: Final = frozenset(
    {
        *("stop", "tool_calls", "function_call"),  # Chat Completions
        *("end_turn", "tool_use", "stop_sequence"),  # Messages
        *("completed", "complete", "end"),  # Responses, Cohere
        *("eos", "eos_token", "tool_call", "finish_reason_stop"),  # engines and gateways
    }
)
"""Words after which an answer is complete, in lower case."""

LENGTH: Final = "max_output_tokens"
FILTER: Final = "content_filter"
_CUT: Final = {
    LENGTH: LENGTH,
    "length": LENGTH,
    "max_tokens": LENGTH,
    "max_completion_tokens": LENGTH,
    "model_length": LENGTH,
    "token_limit": LENGTH,
    "finish_reason_length": LENGTH,
    "model_context_window_exceeded": LENGTH,
    "context_length_exceeded": LENGTH,
    FILTER: FILTER,
    "content_filtered": FILTER,
    "safety": FILTER,
    "recitation": FILTER,
    "blocklist": FILTER,
    "prohibited_content": FILTER,
    "spii": FILTER,
    "guardrail_intervened": FILTER,
    "sensitive": FILTER,
    "error_toxic": FILTER,
    "refusal": "the model declined",
    "abort": "the server aborted it",
    "aborted": "the server aborted it",
    "cancelled": "the server cancelled it",
    "canceled": "the server cancelled it",
    "error": "the server failed midway",
    "timeout": "the server's time for it was over",
    "preempted": "the server gave its place to another request",
    "insufficient_system_resource": "the server is out of resources",
    "pause_turn": "the server paused",
    "malformed_function_call": "the model wrote a tool call that the server could not read",
}
"""What words in lower case say of an answer that is not complete."""

UNSAID: Final = "the server ended it without saying that it is complete"


class Ending:
    """Collects what a server says about the end of one answer.

    Attributes:
        said: Whether it has said anything about that.
    """

    def __init__(self) -> None:
        self.said = False
        self._reason = ""

    def say(self, word: str) -> None:
        """The server names a reason for the end."""
        if not (word := word.strip()):
            return
        self.said = True
        self.spoil(reason_of(word))

    def spoil(self, reason: str) -> None:
        """The answer cannot count as complete, whatever is said later."""
        self._reason = self._reason or reason

    @property
    def reason(self) -> str | None:
        """Why the answer is cut, as it ends now; ``None`` if it is complete."""
        return self._reason or (None if self.said else UNSAID)


def known_reason(word: str) -> str:
    """The reason that a response states for being incomplete, as this side names it."""
    return _CUT.get(word.strip().lower(), word)


def reason_of(word: str) -> str:
    """Why an answer is cut that ends with this word; ``""`` if that completes it."""
    known = word.lower().replace("-", "_").replace(" ", "_")
    if known in COMPLETE:
        return ""
    if known in _CUT:
        return _CUT[known]
    return f'the server ended it with "{word[:80]}", which is no known way to complete an answer'
