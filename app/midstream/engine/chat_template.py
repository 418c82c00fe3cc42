"""The jinja2 environment of chat templates: a sandbox with the functions that transformers offers.

Templates are written for ``apply_chat_template`` of transformers, which defines a little more than
jinja2: loop controls, a tag around what the assistant says, JSON without HTML's escapes, and two
functions (https://huggingface.co/docs/transformers/chat_templating_writing).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import threading
import time
from collections.abc import Generator
from typing import Any, Final

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDER_S: Final = 5.0
"""How long a template may take."""
MAX_REPEATED: Final = 10_000_000
"""How long a text or list may become by a multiplication."""


class EndlessTemplateError(TemplateError):
    """A template took longer than it may."""

    def __str__(self) -> str:
        return f"it takes longer than {RENDER_S:.0f} s"


class _Sandbox(ImmutableSandboxedEnvironment):
    """Refuses what fills the memory in one step."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """A product or a power, if it is not too large."""
        ints = isinstance(left, int) and isinstance(right, int)
        if operator == "**" and ints and abs(right) * max(1, left.bit_length()) > 10_000:
            _refuse("a power is too large")
        if operator == "*" and not ints and _size(left) * _size(right) > MAX_REPEATED:
            _refuse("a text is too long")
        return super().call_binop(context, operator, left, right)


def _size(value: Any) -> float:
    return len(value) if hasattr(value, "__len__") else abs(value)


@contextlib.contextmanager
def render_limit() -> Generator[None]:
    """End what runs in this thread with an error once it has taken longer than a template may."""
    thread = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    lock, over = threading.Lock(), False

    def end() -> None:
        with lock:
            if not over:
                raise_in(thread, ctypes.py_object(EndlessTemplateError))

    timer = threading.Timer(RENDER_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            raise_in(thread, None)


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
