"""The process of ``chat_template``: a sandbox with the functions that transformers offers.

Templates are written for ``apply_chat_template`` of transformers, which defines a little more than
jinja2: loop controls, a tag around what the assistant says, JSON without HTML's escapes, and two
functions (https://huggingface.co/docs/transformers/chat_templating_writing).

It is asked in lines of JSON: first the template, then the values for each prompt.  Every answer is
a pair, ``text``, ``error`` or ``memory`` and a text.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any, Final

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_LENGTH: Final = 10_000_000
"""How long a text or list may become by a multiplication, and what a template writes."""
MAX_BITS: Final = 10_000
"""How large a number may become by a multiplication."""
MAX_ERROR: Final = 300
"""Most characters of an error message that are reported."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """Refuses what fills the memory in one step also where the system sets no limit."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """A product or a power, if it is not too large."""
        ints = isinstance(left, int) and isinstance(right, int)
        if operator == "**" and ints and abs(right) * max(1, left.bit_length()) > MAX_BITS:
            _refuse("a power is too large")
        if operator == "*" and ints and left.bit_length() + right.bit_length() > MAX_BITS:
            _refuse("a product is too large")
        if operator == "*" and not ints and _size(left) * _size(right) > MAX_LENGTH:
            _refuse("a text is too long")
        return super().call_binop(context, operator, left, right)

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """The output of a template, if it is not too long."""
        kept: list[str] = []
        length = 0
        for part in parts:
            length += len(part)
            if length > MAX_LENGTH:
                _refuse("a text is too long")
            kept.append(part)
        return "".join(kept)


def _size(value: Any) -> float:
    return len(value) if hasattr(value, "__len__") else abs(value)


class GenerationTag(Extension):
    """``{% generation %}...{% endgeneration %}``, which marks text for training; here it is
    text.
    """

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what the tag encloses."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def chat_environment() -> ImmutableSandboxedEnvironment:
    """The environment that templates are compiled in."""
    environment: Any = _Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationTag]
    )
    environment.filters["tojson"] = _to_json
    environment.globals.update(raise_exception=_refuse, strftime_now=time.strftime)
    return environment


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, **options)


def _refuse(message: str) -> None:
    raise TemplateError(message)


class _Answers:
    """Answers to questions; the first one is the template."""

    def __init__(self) -> None:
        self._environment = chat_environment()
        self._template: Template | None = None

    def to(self, line: bytes) -> bytes:
        try:
            return _answer("text", self._text(json.loads(line)))
        except MemoryError:
            return _answer("memory", "")
        except Exception as error:
            # A template is foreign code; any exception in it counts as a refusal.
            return _answer("error", str(error)[:MAX_ERROR])

    def _text(self, question: Any) -> str:
        if self._template is not None:
            return self._template.render(question)
        self._template = self._environment.from_string(question)
        return ""


def _answer(kind: str, text: str) -> bytes:
    return json.dumps([kind, text]).encode("ascii") + b"\n"


def _limit_memory(most: int) -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # Other systems than Linux.
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_in(seconds: float) -> None:
    """Have the kernel end this process, whatever the interpreter does; 0 takes it back."""
    if hasattr(signal, "setitimer"):  # Windows has none.
        signal.setitimer(signal.ITIMER_REAL, seconds)


def main(memory: str, seconds: str) -> None:
    """Answer until the input ends.

    Args:
        memory: Bytes that this process may take.
        seconds: How long a question may take.  Who asks ends this process after that; a second
            later it ends by itself, if the one who asks is gone.
    """
    answers = _Answers()
    _limit_memory(int(memory))
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(_answer("text", "ready"))
        sys.stdout.buffer.flush()
        for line in sys.stdin.buffer:
            _end_in(float(seconds) + 1)
            sys.stdout.buffer.write(answers.to(line))
            sys.stdout.buffer.flush()
            _end_in(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
