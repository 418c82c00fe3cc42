"""Which files are Python, and Python's own parser and compiler behind a lock."""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Final

NOT_PYTHON: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What :func:`parse_python` raises for a text that cannot be read as Python."""

_ONE_AT_A_TIME: Final = threading.Lock()

_SUFFIXES: Final = (".py", ".pyi", ".pyw")


def is_python(path: str) -> bool:
    """Whether a file is Python by its name."""
    return path.endswith(_SUFFIXES)


def parse_python(text: str) -> ast.Module:
    """The syntax tree of a text, without warnings about it.

    Use this instead of ``ast.parse``: Python 3.11 counts the depth of the tree for all threads
    together, so a garbage collection that lets a second thread parse meanwhile ends in
    ``SystemError: AST constructor recursion depth mismatch`` (compare python/cpython#106905).
    ``warnings.catch_warnings`` is shared by all threads as well.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: The text cannot be read as Python.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def syntax_error(text: str) -> str:
    """Say where a text stops being Python: ``"line 12: invalid syntax"``, or ``""``.

    The compiler finds what the grammar allows: a ``return`` outside of a function, as is left where
    only its ``def`` was removed.
    """
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except NOT_PYTHON:
        return "it cannot be read as Python"
    return ""
