"""Downloading a variant into a folder that becomes an installed model once it is complete.

When a download ends early, for whatever reason, its files stay, and the same command goes on from
there. Every file is checked against the checksum that the hub states before it counts.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final

from midstream.engine.folder import GRAPH_ORDER, read_folder
from midstream.hub.library import HubError, hub_errors, hub_library
from midstream.hub.offer import HubFile, Offer
from midstream.resources import read_json
from midstream.workspace import atomic

_NOTE: Final = "download.json"
_PART: Final = ".part"
_SPARE: Final = 64 << 20
"""Bytes that stay free on the disk."""

TRIES: Final = 4
"""How often a lost connection is taken up again while nothing comes."""

_FOR_NOW: Final = {429, 500, 502, 503, 504}
"""Answers after which it makes sense to ask again."""

PAUSE_SECONDS: Final = 1.0
"""How long to wait before that."""

Progress = Callable[[str, int], None]
"""Told a file's path and how many more bytes of the whole download are there."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A download that has not ended.

    Attributes:
        name: The model's name.
        repository: Where it is from.
        done: Bytes that are there.
        size: Bytes of all files.
    """

    name: str
    repository: str
    done: int
    size: int


def folder_of(place: Path, name: str) -> Path:
    """The folder in which a download of that name is kept until it is complete."""
    return place / f".{name}.partial"


def partials(place: Path) -> list[Partial]:
    """The downloads in a directory of models that have not ended."""
    found: list[Partial] = []
    for note in sorted(place.glob(f".*.partial/{_NOTE}")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            said: Any = read_json(note)
            done = sum(f.stat().st_size for f in note.parent.rglob("*") if f.is_file())
            done = min(done - note.stat().st_size, int(said["size"]))
            name, repository = str(said["name"]), str(said["repository"])
            found.append(Partial(name, repository, done, int(said["size"])))
    return found


def present(offer: Offer, folder: Path) -> int:
    """The bytes of an offer that are already in a folder."""
    return sum(min(_bytes_there(file, folder), file.size) for file in offer.files)


@contextlib.contextmanager
def claimed(folder: Path) -> Generator[None]:
    """Keep other processes from the folder of a download; see ``folder_of``.

    Raises:
        HubError: Another process has it, or it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _disk_error(error, folder) from error
    try:
        if not _is_locked(descriptor, folder):
            raise HubError(
                f"Another process is downloading into {folder}", "wait until it has ended"
            )
        yield
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int, folder: Path) -> bool:
    """Lock a folder; returns whether that worked, and it is still the folder of that name."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The process that had it may have installed or removed it since it was opened.
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def download(offer: Offer, folder: Path, name: str, progress: Progress) -> None:
    """Download what is missing (blocking); what was there stays, also after an error.

    A file without a checksum of the hub's is downloaded again: it may be of another revision.

    Args:
        offer: What to download.
        folder: Where to; see ``folder_of``.
        name: The model's name, for ``partials``.
        progress: Told what has come.

    Raises:
        HubError: The connection fails, a file comes damaged, or the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _require_room(offer, folder)
        note = {"name": name, "repository": offer.repository, "size": offer.size}
        atomic.overwrite(folder / _NOTE, json.dumps(note).encode())
        with _quiet(), hub_errors(offer.repository, offer.address):
            for file in offer.files:
                _fetch(offer, file, folder, progress)
    except OSError as error:
        raise _disk_error(error, folder) from error


def install(offer: Offer, folder: Path, target: Path) -> None:
    """Make a complete download an installed model.

    Raises:
        ModelFolderError: The files make no model folder; they stay where they are.
        HubError: The folder cannot be moved.
    """
    known = {file.path for file in offer.files}
    kept = known | {_NOTE}
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        # Left by an earlier revision of the repository.
        if file.relative_to(folder).as_posix() not in kept:
            file.unlink()
    try:
        if "midstream.toml" not in known:
            atomic.overwrite(folder / "midstream.toml", _card(offer, target.name).encode())
        (folder / _NOTE).unlink(missing_ok=True)
        read_folder(folder)
        atomic.rename_whole(folder, target)
    except OSError as error:
        raise _disk_error(error, folder) from error


def _card(offer: Offer, name: str) -> str:
    import tomlkit

    card = tomlkit.document()
    card["name"] = name
    graph = Path(offer.variant).name
    if graph.endswith(".onnx") and graph not in GRAPH_ORDER:
        card["graph"] = graph
    facts = {"repository": offer.repository, "revision": offer.revision, "license": offer.license}
    card["facts"] = {**facts, "variant": offer.variant}
    return tomlkit.dumps(card)


def _require_room(offer: Offer, folder: Path) -> None:
    missing = offer.size - present(offer, folder)
    free = shutil.disk_usage(folder).free
    if missing + _SPARE > free:
        raise HubError(
            f"{folder.parent} has {free / 1e6:,.0f} MB free; {missing / 1e6:,.0f} MB are missing",
            "make room on that disk and run the command again",
        )


def _bytes_there(file: HubFile, folder: Path) -> int:
    if not file.verified:
        return 0
    for path in (folder / file.path, _part(file, folder)):
        with contextlib.suppress(OSError):
            return path.stat().st_size
    return 0


def _part(file: HubFile, folder: Path) -> Path:
    """The beginning of a file; one of another content has another name."""
    whole = folder / file.path
    return whole.with_name(f".{whole.name}.{(file.sha256 or file.blob)[:12]}{_PART}")


def _fetch(offer: Offer, file: HubFile, folder: Path, progress: Progress) -> None:
    whole, part = folder / file.path, _part(file, folder)
    whole.parent.mkdir(parents=True, exist_ok=True)
    if whole.is_file() and file.verified and _is_intact(file, whole):
        return
    whole.unlink(missing_ok=True)
    if part.exists() and (part.stat().st_size > file.size or not file.verified):
        part.unlink()
    with part.open("ab") as out:
        _get(offer, file, out, progress)
        out.flush()
        os.fsync(out.fileno())
    if not _is_intact(file, part):
        part.unlink()
        raise HubError(
            f"{file.source} of {offer.repository} arrived damaged: its checksum is not the one "
            f"that the hub states",
            "run the command again to download the file again",
        )
    part.rename(whole)


def _get(offer: Offer, file: HubFile, out: BinaryIO, progress: Progress) -> None:
    """Append what is missing of a file; lost connections are taken up again a few times."""
    import httpx2

    from midstream.hub.bounds import hub_session

    hub = hub_library()
    url = hub.hf_hub_url(
        offer.repository, file.source, revision=offer.revision, endpoint=offer.address
    )
    headers = hub.utils.build_hf_headers(library_name="midstream")
    tries = TRIES
    with hub_session(offer.address) as session:
        while (start := out.tell()) < file.size:
            given = {**headers, "Range": f"bytes={start}-"}
            try:
                # The library's own repetition would begin the block anew, and wait as a hub says.
                with session.stream("GET", url, headers=given) as response:
                    if response.status_code not in _FOR_NOW or not tries:
                        hub.utils.hf_raise_for_status(response)
                    if response.status_code == HTTPStatus.OK and start:
                        # The server sends all of it again.
                        progress(file.path, -start)
                        out.seek(0)
                        out.truncate()
                    for block in response.iter_bytes() if response.is_success else ():
                        out.write(block)
                        progress(file.path, len(block))
                        if out.tell() > file.size:
                            break  # It is damaged, so the rest does not matter.
            except httpx2.TransportError:
                if not tries:
                    raise
            tries = TRIES if out.tell() > start else tries - 1
            if tries < 0:
                raise HubError(
                    f"The hub sent fewer bytes of {file.source} than it says that it has",
                    "what was downloaded is kept; run the command again",
                )
            if out.tell() < file.size:
                time.sleep(PAUSE_SECONDS)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Keep the hub's library from writing on standard error."""
    from huggingface_hub.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _is_intact(file: HubFile, path: Path) -> bool:
    """Compare a file with its checksum: SHA-256, or a git object's SHA-1 for small files."""
    size = path.stat().st_size
    if size != file.size:
        return False
    if file.sha256:
        digest, expected = hashlib.sha256(), file.sha256
    elif file.blob:
        digest, expected = hashlib.sha1(f"blob {size}\0".encode()), file.blob
    else:
        return True
    with path.open("rb") as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == expected


def _disk_error(error: OSError, folder: Path) -> HubError:
    if error.errno == errno.ENOSPC:
        return HubError(
            f"The disk of {folder.parent} is full",
            "what was downloaded is kept; make room and run the command again",
        )
    return HubError(f"{error.filename or folder} cannot be written: {error.strerror}", "check it")
