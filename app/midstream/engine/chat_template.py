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
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Final

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

RENDER_S: Final = 5.0
"""How long a template may take."""
MAX_LENGTH: Final = 10_000_000
"""How long a text or list may become by a multiplication, and what a template writes."""
MAX_BITS: Final = 10_000
"""How large a number may become."""
MAX_MEMORY: Final = 2_000_000_000
"""Bytes by which a process may grow while it renders a template (Linux)."""

_FOR_PAGES: Final = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr")
"""Filters of jinja2 that make text of pages.  No prompt needs them, and their patterns take hours
for a text that is made for it, in one step of the interpreter.
"""

_rendering: Final = threading.Lock()


class LargeTemplateError(TemplateError):
    """A template took more memory than it may."""

    def __str__(self) -> str:
        return f"it takes more than {MAX_MEMORY / 1e9:.0f} GB of memory"


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
        if operator == "**" and ints and abs(right) * max(1, left.bit_length()) > MAX_BITS:
            _refuse("a power is too large")
        if operator == "*" and ints and left.bit_length() + right.bit_length() > MAX_BITS:
            _refuse("a product is too large")
        if operator == "*" and not ints and _size(left) * _size(right) > MAX_LENGTH:
            _refuse("a text is too long")
        return super().call_binop(context, operator, left, right)

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """What a template writes, if it is not too long."""
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


@contextlib.contextmanager
def render_limit() -> Generator[None]:
    """End what a template does in this thread with an error once it takes more than it may."""
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
        with _memory_limit():
            yield
    except MemoryError:
        raise LargeTemplateError from None
    finally:
        timer.cancel()
        with lock:
            over = True
            raise_in(thread, None)


@contextlib.contextmanager
def _memory_limit() -> Generator[None]:
    """Limit the memory of the process, as there is no limit for a thread."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        yield
        return
    with _rendering:
        before = resource.getrlimit(resource.RLIMIT_AS)
        most = pages * resource.getpagesize() + MAX_MEMORY
        if any(limit != resource.RLIM_INFINITY and limit < most for limit in before):
            yield
            return
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)


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
    for name in _FOR_PAGES:
        del environment.filters[name]
    environment.filters["tojson"] = _to_json
    environment.globals.update(raise_exception=_refuse, strftime_now=time.strftime)
    return environment


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, **options)


def _refuse(message: str) -> None:
    raise TemplateError(message)
