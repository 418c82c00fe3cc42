"""Where a text has syntax errors, and Python's own parser behind a lock."""

from __future__ import annotations

import ast
import contextlib
import threading
import warnings
from typing import Final

from midstream.code.languages import grammar_of

NOT_PYTHON: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of ``parse_python`` for a text that cannot be read as Python."""

_ONE_AT_A_TIME: Final = threading.Lock()
_TRIES: Final = 10
"""Attempts at parsing while other threads disturb it."""

_SUFFIXES: Final = (".py", ".pyi", ".pyw")


def is_python(path: str) -> bool:
    """Whether a file is Python by its name."""
    return path.endswith(_SUFFIXES)


def parse_python(text: str) -> ast.Module:
    """The syntax tree of a text, without warnings about it.

    Use this instead of ``ast.parse``: Python 3.11 counts the depth of the tree for all threads
    together, so a garbage collection that lets a second thread parse meanwhile ends in
    ``SystemError: AST constructor recursion depth mismatch`` (compare python/cpython#106905).
    ``warnings.catch_warnings`` is shared by all threads as well.  Libraries take no lock: Textual
    parses the arguments of a key's action.  So a text is tried again after that error.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: The text cannot be read as Python.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(_TRIES - 1):
            with contextlib.suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)


def has_syntax(path: str) -> bool:
    """Whether the syntax of a file can be checked, by its name."""
    return is_python(path) or grammar_of(path) is not None


def same_language(path: str, other: str) -> bool:
    """Whether two files may use one another's names, by their languages."""
    mine, theirs = grammar_of(path), grammar_of(other)
    if mine is None or theirs is None:
        return is_python(path) and is_python(other)
    return mine is theirs or (mine.family != "" and mine.family == theirs.family)


def newly_broken(path: str, before: str, after: str) -> str:
    """Say where a text breaks the syntax of its language: ``"line 12: invalid syntax near ``}``"``.

    Args:
        path: The file, whose name tells the language.
        before: Its text before.
        after: Its text after.

    Returns:
        ``""`` if nothing is wrong, or the same was wrong before.  A Python text that was broken
        before may be broken anywhere: its parser stops at the first place.
    """
    if is_python(path):
        broken = syntax_error(after)
        return "" if broken and syntax_error(before) else broken
    language = grammar_of(path)
    if language is None:
        return ""
    from midstream.code.trees import new_fault

    fault = new_fault(language, before, after)
    return "" if fault is None else str(fault)


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
