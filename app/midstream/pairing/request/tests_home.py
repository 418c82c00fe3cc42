"""The file that gets the tests of another one, where an instruction names none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from midstream.code.languages import grammar_of, is_test, tested_names
from midstream.code.syntax import is_python

_FIRST: Final = {
    "Python": "tests/test_{stem}.py",
    "JavaScript": "{folder}/{stem}.test{suffix}",
    "TypeScript": "{folder}/{stem}.test{suffix}",
    "Go": "{folder}/{stem}_test.go",
}
"""Where the first test of a project goes."""


def home_of_tests(path: str, files: Sequence[str]) -> str | None:
    """The test file of a file: the one that it has, or a new one named and placed as others are.

    Args:
        path: The file with the code to test; a test file is its own.
        files: The files of the project.

    Returns:
        The file, which may be missing; ``None`` where the language has no usual place for it.
    """
    if is_test(path):
        return path
    source, language = PurePosixPath(path), _language(path)
    tests = [each for each in files if tested_names(each) and _language(each) == language]
    own = [each for each in tests if source.stem.lower() in tested_names(each)]
    if own:
        return min(own, key=lambda each: (_steps(source, each), each))
    sources = {str(PurePosixPath(each).with_suffix("")) for each in files}
    folders = Counter(PurePosixPath(each).parent for each in tests)
    tests.sort(key=lambda each: (_steps(source, each), -folders[PurePosixPath(each).parent], each))
    for test in map(PurePosixPath, tests):
        about = tested_names(str(test))[0]
        at = test.name.lower().index(about)
        name = f"{test.name[:at]}{source.stem}{test.name[at + len(about) :]}"
        beside = str(test.with_name(test.name[at : at + len(about)])) in sources
        return str((source.parent if beside else test.parent) / name)
    first = _FIRST.get(language)
    if first is None:
        return None
    named = first.format(folder=source.parent, stem=source.stem, suffix=source.suffix)
    return str(PurePosixPath(named))


def _language(path: str) -> str:
    grammar = grammar_of(path)
    return "Python" if is_python(path) else "" if grammar is None else grammar.name


def _steps(source: PurePosixPath, test: str) -> int:
    """How many folders are between two files."""
    return len(PurePosixPath(os.path.relpath(PurePosixPath(test).parent, source.parent)).parts)
