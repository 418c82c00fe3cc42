"""``midstream models get`` and ``remove``: downloading, installing and removing published models.

Only these commands ask a hub, and only for what was named. Nothing is downloaded before its
size, its licence and the free disk were shown and agreed to.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.commands.common import print_json, printable
from midstream.errors import UnavailableError, UsageError
from midstream.resources import free_disk, model_places

if TYPE_CHECKING:
    from midstream.hub.offer import Offer
    from midstream.hub.published import PublishedModel


def add_get_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``get``."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="NAME|REPO",
        help="a model of the catalogue, or OWNER/NAME on the hub; without one, the catalogue",
    )
    parser.add_argument(
        "--variant",
        metavar="FILE|FOLDER",
        help="which model file of the repository, where it has several (onnx/model_q4f16.onnx)",
    )
    parser.add_argument("--revision", metavar="REV", help="a branch, tag or commit")
    parser.add_argument("--name", help="what to call it here; default: the repository's name")
    parser.add_argument("--yes", action="store_true", help="download without asking")


def add_remove_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``remove``."""
    parser.add_argument(
        "model", metavar="NAME", help="an installed model or an unfinished download"
    )
    parser.add_argument("--yes", action="store_true", help="remove without asking")


def run_get(options: argparse.Namespace) -> int:
    """Download a published model, or list the catalogue.

    Raises:
        UserError: The hub or the disk refuses, or the user did not agree.
    """
    if options.model is None:
        _catalogue(as_json=options.json)
        return 0
    from midstream.hub.download import claimed, download, folder_of, install, present
    from midstream.hub.offer import look_up
    from midstream.hub.published import published_model

    known = published_model(options.model)
    place = model_places()[0]
    name = options.name or (known.name if known else options.model.rsplit("/", 1)[-1])
    _require_free(name, place)
    offer = look_up(
        known.repository if known else options.model,
        variant=options.variant or (known.variant if known else None),
        revision=options.revision,
    )
    folder = folder_of(place, name)
    done = present(offer, folder)
    _show_offer(offer, known, place / name, done, as_json=options.json)
    if not options.yes:
        _agree(f"Download {_megabytes(offer.size - done)}?")
    meter = _Meter(offer.size, done, as_json=options.json)
    with claimed(folder):
        try:
            download(offer, folder, name, meter.add)
        except KeyboardInterrupt:
            meter.end()
            print(
                f"Stopped; {_megabytes(present(offer, folder))} of {_megabytes(offer.size)} are "
                f"kept. `midstream models get {options.model}` resumes, "
                f"`midstream models remove {name}` removes them.",
                file=sys.stderr,
            )
            raise
        finally:
            meter.end()
        install(offer, folder, place / name)
    return _try_out(place / name, as_json=options.json)


def run_remove(options: argparse.Namespace) -> int:
    """Remove an installed model or an unfinished download.

    Raises:
        UserError: There is none of that name, or it is part of the installation.
    """
    from midstream.hub.download import folder_of

    own, shipped = model_places()
    name = options.model
    found = [
        path
        for path in (own / name, folder_of(own, name))
        if Path(name).name == name and path.is_dir()
    ]
    if not found:
        if (shipped / name).is_dir():
            raise UsageError(
                f"{name} is part of Midstream and cannot be removed; choose another with --model."
            )
        raise UsageError(f"No model {name} is in {own}; `midstream models` lists what is.")
    size = sum(file.stat().st_size for path in found for file in path.rglob("*") if file.is_file())
    if not options.yes:
        _agree(f"Remove {' and '.join(map(str, found))} ({_megabytes(size)})?")
    for path in found:
        try:
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path)
        except OSError as error:
            raise UnavailableError(f"{path} cannot be removed: {error.strerror}.") from error
    if options.json:
        print_json({"removed": name, "bytes": size})
    else:
        print(printable(f"{name} is removed; {_megabytes(size)} are free again."))
    return 0


def print_partials(place: Path, *, as_json: bool) -> int:
    """Print the downloads that have not ended; returns how many there are."""
    from midstream.hub.download import partials

    found = partials(place)
    for partial in found:
        if as_json:
            print_json({"partial": True, **asdict(partial)})
        else:
            what = f"{_megabytes(partial.done)} of {_megabytes(partial.size)} downloaded"
            print(printable(f"{partial.name:<24} {what:<40} `midstream models get {partial.name}`"))
    return len(found)


def _require_free(name: str, place: Path) -> None:
    if Path(name).name != name or name.startswith(".") or not name.isprintable():
        raise UsageError(f'"{printable(name)}" is not a valid folder name; give one with --name.')
    if (place / name).exists():
        raise UsageError(
            f"{place / name} already exists; `midstream models remove {name}` removes it, "
            "--name takes another name."
        )


def _catalogue(*, as_json: bool) -> None:
    from midstream.engine.bandwidth import LARGE, quiet_bandwidth
    from midstream.engine.graph import usable_cores
    from midstream.hub.published import published_models

    bandwidth = quiet_bandwidth(LARGE, min(8, usable_cores()))
    if not as_json:
        print(f"{'name':<20} {'download':>9} {'memory':>8} {'tokens/s':>9}  licence")
    for model in published_models():
        speed = model.speed(bandwidth)
        if as_json:
            print_json(
                {**asdict(model), "memory": model.memory, "tokens_per_second": round(speed, 1)}
            )
            continue
        print(
            f"{model.name:<20} {_megabytes(model.size):>9} {model.memory / 1e9:>5.1f} GB "
            f"{f'~{speed:.0f}':>9}  {model.license}"
        )
        print(f"{'':<20} {model.title}; {', '.join(model.languages)}")
    if not as_json:
        print(
            "\n`midstream models get NAME` downloads one, `midstream models get OWNER/NAME` any "
            "repository with ONNX.\nMemory and speed are estimates, the speed is based on this "
            f"machine's memory bandwidth ({bandwidth:.0f} GB/s)."
        )


def _show_offer(
    offer: Offer, known: PublishedModel | None, target: Path, done: int, *, as_json: bool
) -> None:
    facts: dict[str, Any] = {
        "repository": f"{offer.address}/{offer.repository}",
        "revision": offer.revision,
        "variant": offer.variant,
        "others": list(offer.others),
        "license": offer.license,
        "bytes": offer.size,
        "present": done,
        "free": free_disk(target),
        "folder": str(target),
    }
    if as_json:
        print_json({"event": "offer", **facts})
        return
    spelled = {**facts, "others": ", ".join(offer.others[:8]) or "none"}
    spelled["bytes"] = f"{_megabytes(offer.size)} in {len(offer.files)} files"
    spelled["present"] = _megabytes(done)
    spelled["free"] = f"{_megabytes(facts['free'])} on its disk"
    if known is not None and known.license.lower() != offer.license.lower():
        spelled["license"] = f"{offer.license}; by the catalogue {known.license}"
    unverified = [file.source for file in offer.files if not file.verified]
    if unverified:
        files = ", ".join(unverified[:4]) + (" and more" if len(unverified) > 4 else "")
        spelled["unverified"] = f"the hub states no checksum of {files}"
    for name, value in spelled.items():
        label = {"bytes": "download", "present": "of it here", "license": "licence"}.get(name, name)
        print(printable(f"{label:<12} {value}"))


def _agree(question: str) -> None:
    """Ask on the terminal.

    Raises:
        UsageError: There is no terminal, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on; --yes goes ahead without asking.")
    print(f"{question} [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("Nothing was changed.")


class _Meter:
    """Shows how a download goes on: one line on a terminal, one per file elsewhere."""

    def __init__(self, size: int, done: int, *, as_json: bool) -> None:
        self._size = size
        self._first = self._done = done
        self._as_json = as_json
        self._live = sys.stderr.isatty() and not as_json
        self._file = ""
        self._started = time.monotonic()
        self._shown = 0.0

    def add(self, file: str, count: int) -> None:
        self._done += count
        now = time.monotonic()
        other = file != self._file
        self._file = file
        if now - self._shown < 0.25 and not other:
            return
        if self._as_json:
            print_json({"event": "progress", "done": self._done, "of": self._size, "file": file})
        elif self._live:
            rate = (self._done - self._first) / max(now - self._started, 0.001)
            left = (self._size - self._done) / rate if rate > 0 else 0
            words = f"{_megabytes(self._done)} of {_megabytes(self._size)}, {rate / 1e6:.1f} MB/s, "
            words += f"{left // 60:.0f}:{left % 60:02.0f} left  {Path(file).name}"
            print(f"\r\x1b[K{printable(words)[:100]}", end="", file=sys.stderr, flush=True)
        elif other:
            print(printable(f"{file} ..."), file=sys.stderr, flush=True)
        self._shown = now

    def end(self) -> None:
        if self._live and self._file:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._live = False


def _try_out(folder: Path, *, as_json: bool) -> int:
    """Load and run what was installed; says what it is, or why it does not work."""
    from midstream.engine.inspect import check

    failed = [step.detail for step in check(folder) if not step.ok]
    if as_json:
        print_json({"event": "installed", "folder": str(folder), "fault": "".join(failed)})
    elif failed:
        print(printable(f"{folder.name} is installed but does not work: {failed[0]}"))
        print(f"`midstream models remove {folder.name}` removes it.")
    else:
        print(printable(f"{folder.name} is installed and works; --model {folder.name} uses it."))
    return 1 if failed else 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size < 10_000_000 else f"{size / 1e6:,.0f} MB"
