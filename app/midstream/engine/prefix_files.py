"""KV cache rows on disk, so that a processed conversation outlives the process.

Reading a long prompt takes a large model seconds; its rows come back from disk in a fraction of
that. A file holds the rows of one prompt, their tokens, and a hash over both that is keyed with a
secret of this user. Rows without a valid hash are refused: forged rows would control the model's
answers. Rows depend on the weights and on the kernels that computed them, so a file
belongs to one state of a model folder, one version of ONNX Runtime and one provider.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import logging
import math
import os
import secrets
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from midstream.engine.folder import ModelFolder
from midstream.engine.graph import CachePair
from midstream.resources import free_disk, open_regular, read_small
from midstream.workspace.paths import make_private, state_dir

Array = np.ndarray[Any, Any]

MAGIC = b"midstream cache rows 2\n"

MIN_ROWS = 256
"""Fewer rows are as quickly computed as found, read and checked."""

SPARE_SHARE = 4
"""A file is written if this many times its size is free."""

_SECRET_BYTES = 32
"""Length of the secret: that of a SHA-256 digest."""

_HEADER_BYTES = 16 << 20
"""Upper bound of a header: at eight bytes for a token, two million tokens."""


class _FileHeader(msgspec.Struct):
    """The first lines of a file; the rows follow, tensor by tensor."""

    source: str
    tokens: list[int]
    digest: str
    """HMAC with SHA-256 of the source, the tokens as 64-bit integers and the rows."""


@dataclass(frozen=True, slots=True)
class KeptPrefix:
    """A file: which tokens its rows stand for, and where they begin in it."""

    path: Path
    tokens: list[int]
    digest: str
    offset: int


class PrefixFiles:
    """The files of one loaded model.

    A file that cannot be read or written is never an error: the prompt is read again.
    """

    def __init__(
        self, folder: ModelFolder, pairs: Sequence[CachePair], *, source: str, budget: int
    ) -> None:
        """Look nothing up yet.

        Args:
            folder: The model's.
            pairs: Its cache tensors.
            source: What else the rows depend on, such as the provider and ONNX Runtime's version.
            budget: Bytes that the files of all models may take.
        """
        self.budget = budget
        self._pairs = pairs
        self._source = _fingerprint(folder, pairs, source)
        self._files: list[KeptPrefix] | None = None

    def find(self, prompt: Sequence[int], least: int) -> tuple[list[Array], int] | None:
        """Return rows for the beginning of a prompt.

        Returns:
            Rows as ``Decoder.save_rows`` returns them and how many of them are the prompt's; None
            if there are not that many.
        """
        if len(prompt) < least:
            return None
        shared = [(shared_length(kept.tokens, prompt), kept) for kept in self._known()]
        longest, kept = max(shared, key=lambda pair: pair[0], default=(0, None))
        if kept is None or longest < least:
            return None
        rows = self._read(kept)
        if rows is None:
            self._known().remove(kept)
            with contextlib.suppress(OSError):
                kept.path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(kept.path)
        return rows, longest

    def keep(self, tokens: Sequence[int], rows: Sequence[Array]) -> None:
        """Write the rows of a prompt in place of those of its beginnings.

        Files that were used longest ago are deleted if all of them take more than the budget.
        """
        size = sum(tensor.nbytes for tensor in rows)
        folder = _folder()
        try:
            make_private(folder)
            if size > self.budget or free_disk(folder) < SPARE_SHARE * size:
                return
            tensors = [np.ascontiguousarray(tensor) for tensor in rows]
            digest = _digest(self._source, tokens, [tensor.data for tensor in tensors])
            header = _FileHeader(self._source, list(tokens), digest)
            self._write(folder, header, tensors)
            for kept in self._known():
                # A different end, such as an answer, is soon computed again.
                if shared_length(kept.tokens, tokens) > len(kept.tokens) - MIN_ROWS:
                    kept.path.unlink(missing_ok=True)
            _shrink(folder, self.budget)
        except OSError as error:
            logging.getLogger(__name__).info("KV cache rows are not saved: %s", error)

    def covers(self, tokens: Sequence[int], spare: int) -> bool:
        """Whether a file has rows for all these tokens but the last ``spare`` ones."""
        return any(
            shared_length(kept.tokens, tokens) >= len(tokens) - spare for kept in self._known()
        )

    def _known(self) -> list[KeptPrefix]:
        if self._files is None:
            found = map(_header, sorted(_folder().glob("*.rows")))
            self._files = [kept for kept, source in filter(None, found) if source == self._source]
        return self._files

    def _write(self, folder: Path, header: _FileHeader, rows: Sequence[Array]) -> None:
        handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + msgspec.json.encode(header) + b"\n")
                for tensor in rows:
                    file.write(tensor.data)
            # Not synced: what a crash leaves incomplete fails its hash.
            Path(name).replace(folder / f"{self._source[:16]}-{header.digest[:16]}.rows")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _read(self, kept: KeptPrefix) -> list[Array] | None:
        count = len(kept.tokens)
        shapes = [(pair.heads, count, pair.width) for pair in self._pairs]
        sizes = [
            math.prod(shape) * np.dtype(pair.dtype).itemsize
            for pair, shape in zip(self._pairs, shapes, strict=True)
        ]
        try:
            with open_regular(kept.path) as file:
                if os.fstat(file.fileno()).st_size != kept.offset + sum(sizes):
                    return None
                file.seek(kept.offset)
                body = file.read(sum(sizes))
            digest = _digest(self._source, kept.tokens, [body])
        except (OSError, OverflowError):
            return None
        if not hmac.compare_digest(digest, kept.digest) or len(body) != sum(sizes):
            return None
        rows: list[Array] = []
        at = 0
        for pair, shape in zip(self._pairs, shapes, strict=True):
            size = shape[0] * shape[1] * shape[2]
            rows.append(np.frombuffer(body, pair.dtype, size, at).reshape(shape))
            at += rows[-1].nbytes
        return rows


def shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix of two sequences."""
    limit = min(len(one), len(other))
    for index in range(limit):
        if one[index] != other[index]:
            return index
    return limit


def _digest(source: str, tokens: Sequence[int], body: Iterable[bytes | memoryview]) -> str:
    """Hash rows and their tokens.

    Raises:
        OSError: There is no secret, and none can be made.
        OverflowError: A token is none.
    """
    digest = hmac.new(_secret(), source.encode(), hashlib.sha256)
    digest.update(np.asarray(tokens, np.int64).tobytes())
    for part in body:
        digest.update(part)
    return digest.hexdigest()


def _secret() -> bytes:
    """The secret of this user; it is made where there is none."""
    path = make_private(state_dir()) / "prefixes.secret"
    with contextlib.suppress(FileExistsError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
    secret = read_small(path)
    if len(secret) != _SECRET_BYTES:  # Its writer was killed, or is still writing.
        path.unlink(missing_ok=True)
        raise OSError(errno.EIO, "it is no secret", str(path))
    return secret


def _folder() -> Path:
    return state_dir() / "prefixes"


def _fingerprint(folder: ModelFolder, pairs: Sequence[CachePair], source: str) -> str:
    """Name the state of a model folder and its cache's layout."""
    digest = hashlib.sha256(source.encode())
    for path in sorted(folder.graph.parent.iterdir()):
        if path.name.startswith(folder.graph.stem):
            facts = path.stat()
            digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    for pair in pairs:
        digest.update(f"{pair.past}\0{pair.heads}\0{pair.width}\0{np.dtype(pair.dtype)}".encode())
    return digest.hexdigest()


def _header(path: Path) -> tuple[KeptPrefix, str] | None:
    """Read a file's header; None if it has another format or cannot be read."""
    try:
        with open_regular(path) as file:
            if file.read(len(MAGIC)) != MAGIC:
                return None
            line = file.readline(_HEADER_BYTES)
        header = msgspec.json.decode(line, type=_FileHeader)
    except (OSError, ValueError):
        return None
    kept = KeptPrefix(path, header.tokens, header.digest, len(MAGIC) + len(line))
    return kept, header.source


def _shrink(folder: Path, budget: int) -> None:
    """Delete the files that were used longest ago, of all models, until the rest fits."""
    facts = [(path.stat(), path) for path in folder.glob("*.rows")]
    total = 0
    for stat, path in sorted(facts, key=lambda pair: pair[0].st_mtime, reverse=True):
        total += stat.st_size
        if total > budget:
            path.unlink(missing_ok=True)
