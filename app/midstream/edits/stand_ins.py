"""Files that are decided as a whole: one line stands for all that they hold.

A picture or a very long file has no lines to decide about.  Its stand-in has one line that names
its kind, size and content, so that a change is one hunk, with the decisions, the undo and the
journal that every hunk has.  A stand-in is written as the bytes that its line stands for; lines
that stand for nothing are never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from midstream.edits.documents import NotTextError, SourceText, UnencodableError

LARGEST: Final = 16 << 20
"""Of a larger file the bytes are not kept."""
MOST_BYTES: Final = 4 * LARGEST
"""How many bytes are kept of the states of one file; the oldest go first."""


@dataclass(frozen=True, slots=True)
class StandIn(SourceText):
    """A file as a whole.

    Attributes:
        contents: The bytes that lines stand for, oldest first; ``None`` if they were not kept.
    """

    contents: Mapping[tuple[str, ...], bytes | None] = field(
        default_factory=dict[tuple[str, ...], bytes | None], compare=False, repr=False
    )

    @classmethod
    def of(cls, data: bytes, digest: str, former: Iterable[SourceText] = ()) -> StandIn:
        """The stand-in of a file.

        Args:
            data: What the file holds.
            digest: Tells contents of the same size apart.
            former: What the file held so far, and may be asked for again.
        """
        return cls.named(_named(data, digest), data, former)

    @classmethod
    def named(cls, line: str, data: bytes | None, former: Iterable[SourceText] = ()) -> StandIn:
        """The stand-in with a line that was made before; ``None``: its bytes were not kept."""
        contents: dict[tuple[str, ...], bytes | None] = {}
        for text in former:
            if isinstance(text, StandIn):
                contents |= text.contents
            elif text.lines:
                contents[text.lines] = text.to_bytes()
        contents.pop((line,), None)
        contents[(line,)] = None if data is None or len(data) > LARGEST else data
        size = sum(len(known) for known in contents.values() if known is not None)
        for lines, known in list(contents.items()):
            if size > MOST_BYTES and known is not None:
                contents[lines] = None
                size -= len(known)
        return cls((line,), ("\n",), contents=contents)

    def to_bytes(self) -> bytes:
        """The bytes that the lines stand for.

        Raises:
            UnencodableError: They were not kept, or the lines stand for nothing.
        """
        data = self.contents.get(self.lines)
        if data is not None:
            return data
        if self.lines in self.contents:
            raise UnencodableError(
                f"what it held is not kept (more than {LARGEST >> 20} MiB, or too long ago)"
            )
        raise UnencodableError("it is no text of lines, so it is kept or put back as a whole")


def _named(data: bytes, digest: str) -> str:
    try:
        SourceText.from_bytes(data)
        kind = "text"
    except NotTextError:
        kind = "binary"
    return f"{kind} file, {len(data):,} bytes, content {digest[:12]}"
