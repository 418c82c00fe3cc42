"""Contents of files: text in lines, or a stand-in for a file that is decided as a whole.

A file is decided as a whole if it is no text of usual length, or if a change leaves its lines as
they are: of line ends, of the encoding, of the permission to run it, or of where a link points.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from midstream.edits.documents import (
    LINE_ENDS,
    NO_FILE,
    NotTextError,
    SourceText,
    UnencodableError,
)
from midstream.edits.stand_ins import FileProperties, StandIn, is_whole, properties_of
from midstream.errors import UserError
from midstream.workspace.content import Entry, LinkTarget

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal

MAX_TEXT_BYTES: Final = 1_000_000
"""A larger file that another program has changed is reviewed as a whole, bytes."""
MAX_INLINE_BYTES: Final = 30_000
"""Bytes that are decoded without a thread; it takes about 1 ms."""

_PROGRAM: Final = "+x"


class NotTextFileError(UserError):
    """The file is not text."""

    code = "not-text"


# Text


def decoded(path: str, data: bytes) -> SourceText:
    """The text of a file (blocking).

    Raises:
        NotTextFileError: It is not text, or a symbolic link.
    """
    hint = "name a text file instead"
    if isinstance(data, LinkTarget):
        raise NotTextFileError(f"{path} is a symbolic link now", hint)
    try:
        return SourceText.from_bytes(data)
    except NotTextError as error:
        raise NotTextFileError(f"{path} is not a text file ({error})", hint) from None


def usual_text(data: bytes) -> SourceText | None:
    """A text of a length that is reviewed by lines, ``None`` for anything else."""
    if len(data) > MAX_TEXT_BYTES:
        return None
    try:
        return decoded("", data)
    except NotTextFileError:
        return None


# Between the disk and texts


def stand_in(
    entry: Entry, former: Iterable[SourceText] = (), program: bool | None = None
) -> StandIn:
    """The stand-in for a file that is decided as a whole.

    Args:
        entry: What it is.
        former: What it was so far.
        program: Whether it could be run while it was a text.
    """
    properties = FileProperties(
        bytes(entry.data), entry.executable, isinstance(entry.data, LinkTarget), entry.digest
    )
    return StandIn.of(properties, former, program)


def state_digest(entry: Entry, *, whole: bool) -> str:
    """Digest of what a file is: of its bytes; if it is decided as a whole, of its mode, too."""
    return entry.digest + _PROGRAM * bool(whole and entry.executable)


def content_part(digest: str | None) -> str | None:
    """The digest of the bytes alone, as the workspace knows it."""
    return None if digest is None else digest.removesuffix(_PROGRAM)


def is_program(digest: str | None) -> bool:
    """Whether the digest is that of a program; unknown of a file that is decided by lines."""
    return digest is not None and digest.endswith(_PROGRAM)


def wanted_state(text: SourceText, now: str | None) -> tuple[Entry | None, str | None]:
    """The state on disk that a text asks for, and its digest, ``None`` for no file (blocking).

    Args:
        text: The text.
        now: The digest of what is there.

    Raises:
        UnencodableError: It has a character that the file's encoding lacks, or stands for bytes
            that were not kept.
    """
    entry, whole = as_entry(text), is_whole(text)
    if entry is None:
        return None, None
    if whole and entry.executable is None:
        entry = entry._replace(executable=is_program(now))
    return entry, state_digest(entry, whole=whole)


def wanted_digest(text: SourceText, now: str | None) -> str | None:
    """The second part of ``wanted_state``, also of a large file whose bytes were not kept."""
    return whole_digest(text, now) or wanted_state(text, now)[1]


def whole_digest(text: SourceText, now: str | None) -> str | None:
    """The digest of a file that is decided as a whole; ``None`` if it is not, or not known."""
    properties = properties_of(text) if is_whole(text) else None
    if properties is None or not properties.digest:
        return None
    program = is_program(now) if properties.executable is None else properties.executable
    return properties.digest + _PROGRAM * program


def as_entry(text: SourceText) -> Entry | None:
    """What a file is with this text, ``None`` for no file; raises as ``wanted_state``."""
    if text.missing:
        return None
    data = text.to_bytes()
    if not isinstance(text, StandIn):
        return Entry(data)
    properties = text.properties
    return Entry(LinkTarget(data), False) if properties.link else Entry(data, properties.executable)


def encode(path: str, text: SourceText, now: str | None) -> tuple[Entry | None, str | None]:
    """As ``wanted_state``; UserError if it cannot be written."""
    try:
        return wanted_state(text, now)
    except UnencodableError as error:
        hint = "keep it, or change it by hand" if is_whole(text) else "convert the file first"
        raise UserError(f"{path} was not written: {error}", hint) from None


async def text_now(
    proposal: FileProposal, entry: Entry, program: bool | None, *, review: bool
) -> SourceText:
    """What an open file holds now, in the form in which it is decided.

    Args:
        proposal: The proposal of the file.
        entry: What it is on disk.
        program: Whether it could be run before.
        review: Whether it is reviewed, so that it need not be text any more.

    Raises:
        NotTextFileError: It is not text.
    """
    if not is_whole(proposal.base):
        try:
            if len(entry.data) <= MAX_INLINE_BYTES:
                return decoded(proposal.path, entry.data)
            return await asyncio.to_thread(decoded, proposal.path, entry.data)
        except NotTextFileError:
            if not review:
                raise
    return await asyncio.to_thread(stand_in, entry, list(proposal.known_texts()), program)


# What was changed


def reviewed_texts(
    old: Entry | None, new: Entry | None
) -> tuple[SourceText | None, SourceText | None]:
    """The two states of a file that was changed, of the same sort; ``None``: no file."""
    texts = [None if entry is None else usual_text(entry.data) for entry in (old, new)]
    by_lines = all(
        entry is None or text is not None for entry, text in zip((old, new), texts, strict=True)
    )
    before, after = texts
    lines = [() if text is None else text.lines for text in texts]
    if by_lines and lines[0] != lines[1]:  # An empty file that appears or goes has none.
        return before, after
    return None if old is None else stand_in(old), None if new is None else stand_in(new)


def former_text(old: Entry | None, new: Entry | None) -> SourceText:
    """What a file held before it was changed, in the form in which the change is decided."""
    before, after = reviewed_texts(old, new)
    if before is not None:
        return before
    return NO_FILE if after is None else after.gone()


def same(old: Entry | None, new: Entry | None) -> bool:
    """Whether nothing was changed, as far as is known."""
    if old is None or new is None:
        return old is new
    alike = old.data == new.data and type(old.data) is type(new.data)
    return alike and not mode_changed(old.executable, new.executable)


def mode_changed(old: bool | None, new: bool | None) -> bool:
    """Whether a file became executable or ceased to be; not if either state is unknown."""
    return None not in (old, new) and old != new


def unseen_change(before: SourceText, after: SourceText) -> list[str]:
    """The differences between two texts that show in no line, in words."""
    if is_whole(before) or is_whole(after) or not (before.lines and after.lines):
        return []
    changes: list[str] = []
    if before.newline != after.newline:
        ends = (LINE_ENDS[text.newline] for text in (before, after))
        changes.append(f"line endings ({' to '.join(ends)})")
    if before.encoding != after.encoding:
        changes.append(f"encoding ({before.encoding} to {after.encoding})")
    if before.bom != after.bom:
        changes.append(f"byte order mark ({'added' if after.bom else 'removed'})")
    if before.final_newline != after.final_newline:
        changes.append(f"final newline ({'added' if after.final_newline else 'removed'})")
    return changes
