"""What files hold: text in lines, or a stand-in for a file that is decided as a whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from midstream.errors import UserError

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.proposal import FileProposal
    from midstream.workspace.files import Workspace

LONGEST_TEXT: Final = 1_000_000
"""A larger file that another program has changed is reviewed as a whole, bytes."""


class NotTextFileError(UserError):
    """The file is not text."""

    code = "not-text"


def read_bytes(workspace: Workspace, path: str) -> tuple[bytes, str]:
    """Bytes and digest of a file (blocking).

    Raises:
        UserError: The file cannot be read.
    """
    from midstream.workspace.files import content_digest

    data = workspace.read(path)
    return data, content_digest(data)


def read_text(workspace: Workspace, path: str) -> tuple[bytes, str, SourceText]:
    """Bytes, digest and text of a file (blocking).

    Raises:
        UserError: The file cannot be read or is not text.
    """
    data, digest = read_bytes(workspace, path)
    return data, digest, _decoded(path, data)


async def text_now(proposal: FileProposal, data: bytes, digest: str, *, review: bool) -> SourceText:
    """What an open file holds now: its text, or the stand-in of a file that is decided as a whole.

    Args:
        proposal: The proposal of the file.
        data: Its bytes.
        digest: Their digest.
        review: Whether it is reviewed, so that it need not be text any more.

    Raises:
        NotTextFileError: It is not text.
    """
    if not is_whole(proposal.base):
        try:
            return await asyncio.to_thread(_decoded, proposal.path, data)
        except NotTextFileError:
            if not review:
                raise
    from midstream.edits.stand_ins import StandIn

    return StandIn.of(data, digest, proposal.known_texts())


def _decoded(path: str, data: bytes) -> SourceText:
    from midstream.edits.documents import NotTextError, SourceText

    try:
        return SourceText.from_bytes(data)
    except NotTextError as error:
        raise NotTextFileError(
            f"{path} is not a text file ({error})", "name a text file instead"
        ) from None


def reviewed_texts(old: bytes | None, new: bytes | None) -> list[SourceText | None]:
    """The two states of a file that was changed, of the same sort; ``None``: no file."""
    from midstream.edits.stand_ins import StandIn
    from midstream.workspace.files import content_digest

    states = (old, new)
    texts = [None if data is None else _source_text(data) for data in states]
    if all(
        data is None or (text is not None and len(data) <= LONGEST_TEXT)
        for data, text in zip(states, texts, strict=True)
    ):
        return texts
    return [None if data is None else StandIn.of(data, content_digest(data)) for data in states]


def _source_text(data: bytes) -> SourceText | None:
    from midstream.edits.documents import NotTextError, SourceText

    try:
        return SourceText.from_bytes(data)
    except NotTextError:
        return None


def is_whole(text: SourceText) -> bool:
    """Whether a file is decided as a whole."""
    from midstream.edits.stand_ins import StandIn

    return isinstance(text, StandIn)


def encode(path: str, text: SourceText) -> tuple[bytes, str]:
    """Bytes and digest of a text (blocking).

    Raises:
        UserError: The text has a character that the file's encoding lacks, or stands for bytes
            that were not kept.
    """
    from midstream.edits.documents import UnencodableError
    from midstream.workspace.files import content_digest

    try:
        data = text.to_bytes()
    except UnencodableError as error:
        hint = "keep it, or change it by hand" if is_whole(text) else "convert the file first"
        raise UserError(f"{path} was not written: {error}", hint) from None
    return data, content_digest(data)


def unseen_change(before: SourceText, after: SourceText) -> str:
    """What differs between two texts and is in no line, in words; "" if nothing does."""
    if is_whole(before) or is_whole(after) or not (before.lines and after.lines):
        return ""
    changes: list[str] = []
    if before.newline != after.newline:
        ends = (_LINE_ENDS[text.newline] for text in (before, after))
        changes.append(f"line endings ({' to '.join(ends)})")
    if before.encoding != after.encoding:
        changes.append(f"encoding ({before.encoding} to {after.encoding})")
    if before.bom != after.bom:
        changes.append(f"byte order mark ({'added' if after.bom else 'removed'})")
    if before.lines == after.lines and before.final_newline != after.final_newline:
        changes.append(f"final newline ({'added' if after.final_newline else 'removed'})")
    return ", ".join(changes)


_LINE_ENDS: Final = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
