"""A chat template, rendered in a process of its own: it may come from anywhere.

A limit within the process is not enough: a single bytecode instruction may take hours, in which no
other thread runs, and memory cannot be limited for a thread.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final

from midstream.processes import AskedProcess

RENDER_S: Final = 5.0
"""How long a template may take, to be compiled and for each prompt."""
MAX_MEMORY: Final = 2_000_000_000
"""Bytes that its process may take (Linux)."""


class ChatTemplateError(Exception):
    """A template is not valid, refuses a conversation or takes more than it may."""


class ChatTemplate:
    """A compiled template; threads may share it."""

    def __init__(self, source: str) -> None:
        """Compile a template.

        Raises:
            ChatTemplateError: It is not valid, or takes more than it may.
        """
        self._source = source
        self._lock = threading.Lock()
        self._process = self._started()

    def render(self, values: Mapping[str, Any]) -> str:
        """Return what the template writes.

        Args:
            values: The variables of the template, which JSON can represent.

        Raises:
            ChatTemplateError: It refuses the values, or takes more than it may.
        """
        with self._lock:
            if self._process.ended:
                self._process = self._started()
            return _asked(self._process, values)

    def _started(self) -> AskedProcess:
        """A process that has compiled the template."""
        limits = f"{MAX_MEMORY}", f"{RENDER_S}"
        try:
            process = AskedProcess("midstream.engine.chat_template_child", *limits)
        except OSError as error:
            raise ChatTemplateError(f"its process cannot be started: {error}") from error
        try:
            _asked(process, self._source)
        except ChatTemplateError:
            process.end()
            raise
        return process


def _asked(process: AskedProcess, question: object) -> str:
    try:
        answer = process.ask(json.dumps(question).encode("ascii"), RENDER_S)
    except TimeoutError:
        raise ChatTemplateError(f"it takes longer than {RENDER_S:.0f} s") from None
    except EOFError:
        raise ChatTemplateError("its process broke off") from None
    kind, text = json.loads(answer)
    if kind == "memory":
        raise ChatTemplateError(f"it takes more than {MAX_MEMORY / 1e9:.0f} GB of memory")
    if kind == "error":
        raise ChatTemplateError(text)
    return text
