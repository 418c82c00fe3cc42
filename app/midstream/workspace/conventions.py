"""How new files of a folder are written: line ends and byte order mark, as in the files beside."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from midstream.resources import open_regular
from midstream.workspace.repo import GitFailedError, run_git

MAX_LOOKED_AT: Final = 8
"""Files that are looked at, the nearest first."""


class FileForm(NamedTuple):
    """The properties of a text beyond its lines: whether they end with CRLF, and whether a byte
    order mark is in front.
    """

    crlf: bool = False
    bom: bool = False

    def of(self, data: bytes) -> bytes:
        """A new text in this form; a text with its own CRLF or mark keeps them."""
        if b"\0" in data or b"\r" in data or data.startswith(codecs.BOM_UTF8):
            return data
        data = data.replace(b"\n", b"\r\n") if self.crlf else data
        return codecs.BOM_UTF8 + data if self.bom and data else data


def new_file_form(root: Path, rel: str, files: Iterable[str]) -> FileForm:
    """The form of a new file (blocking).

    Git's attribute ``eol`` decides about line ends where it is set.  Else, and for the mark, files
    with the same ending do, if the nearest of them agree.

    Args:
        root: The folder.
        rel: The new file.
        files: The files of the folder.
    """
    forms = {form for path in _alike(rel, files) if (form := _form(root / path)) is not None}
    form = forms.pop() if len(forms) == 1 else FileForm()
    try:
        answer = run_git(root, ["check-attr", "-z", "eol", "--", rel])
    except GitFailedError:
        return form
    eol = os.fsdecode(answer).split("\0")[2:3]
    return form._replace(crlf=eol == ["crlf"]) if eol in (["crlf"], ["lf"]) else form


def _alike(rel: str, files: Iterable[str]) -> list[str]:
    """The nearest files with the same ending."""
    name = PurePosixPath(rel)
    if not name.suffix:
        return []

    def distance(path: str) -> tuple[int, str]:
        return -len(os.path.commonpath([rel, path])), path

    alike = (path for path in files if path.endswith(name.suffix) and path != rel)
    return sorted(alike, key=distance)[:MAX_LOOKED_AT]


def _form(path: Path) -> FileForm | None:
    """The form of a file; ``None`` if it has no line end, or is no text."""
    try:
        with open_regular(path) as file:
            data = file.read(64_000)
    except OSError:
        return None
    if b"\n" not in data or b"\0" in data:
        return None
    return FileForm(data.count(b"\r\n") == data.count(b"\n"), data.startswith(codecs.BOM_UTF8))
