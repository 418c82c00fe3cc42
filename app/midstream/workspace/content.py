"""The content behind a name in a folder: a file's bytes, or the target of a symbolic link."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Final, NamedTuple

MAX_FILE_BYTES: Final = 20_000_000
"""Largest file that is read or written."""


class LinkTarget(bytes):
    """The target of a symbolic link, as the system stores it: all that a link contains."""

    __slots__ = ()


class Entry(NamedTuple):
    """The content behind a name.

    Attributes:
        data: A file's bytes, or a ``LinkTarget``.
        executable: Whether its owner may run it, as git sees it; ``None`` where that is not known.
    """

    data: bytes
    executable: bool | None = None

    @property
    def digest(self) -> str:
        """Digest of ``data``."""
        return content_digest(self.data)


def content_digest(data: bytes) -> str:
    """Digest of content as used everywhere in Midstream: blake2b with 128 bits, in hex.

    That of a link differs from that of a file with the same bytes.
    """
    for known, digest in tuple(_recent):
        if known is data:
            return digest
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    if isinstance(data, LinkTarget):
        return f"{_LINK}{digest}"
    if len(data) > _LARGE:
        _recent.append((data, digest))
    return digest


def is_link_digest(digest: str | None) -> bool:
    """Whether a digest is that of a link."""
    return digest is not None and digest.startswith(_LINK)


_LINK = "link:"
_LARGE = 1_000_000
"""Bytes from which a digest is remembered."""
_recent: deque[tuple[bytes, str]] = deque(maxlen=2)
"""Digests of large content, which takes long: a file's is needed before a change and after it."""
