"""The session's side of the journal: everything that changes proposals and decisions, in order.

The journal holds the inputs of the edits room (base texts, streamed text, decisions), not its
state.  ``resuming`` feeds them in again and arrives at the same hunks with the same ids.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.guard.secrets import mask
from midstream.pairing.turns import Turn

if TYPE_CHECKING:
    from midstream.edits.hunks import Quarantine
    from midstream.workspace.journal import Journal


def pack(data: bytes) -> str:
    """Bytes of a file as they stand in an entry."""
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def unpack(text: str) -> bytes:
    """Inverse of ``pack``.

    Raises:
        ValueError: The text was not made by ``pack``.
    """
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(str(error)) from None


class Recorder:
    """Writes entries from the first turn on: a session that asked nothing leaves no journal.

    Args:
        create: Makes the journal when it is needed; ``None`` to keep none.
        journal: A journal to go on with.
    """

    def __init__(
        self, create: Callable[[], Journal] | None, journal: Journal | None = None
    ) -> None:
        self._create = create
        self._journal = journal
        self._bases: dict[str, tuple[bytes, str | None]] = {}
        self._absent: set[str] = set()
        self._known: dict[str, frozenset[str]] = {}
        self._unfinished: dict[str, str] = {}

    @property
    def path(self) -> Path | None:
        """The journal's first file, ``None`` while there is none."""
        return None if self._journal is None else self._journal.path

    def base(self, path: str, data: bytes, digest: str | None) -> None:
        """A file was opened, or its base was replaced by what is on disk; no digest: no file."""
        if self._journal is not None:
            self._append("base", path=path, data=pack(data), digest=digest)
        elif self._create is not None:
            self._bases[path] = data, digest

    def begin(
        self, turn: Turn, known: frozenset[str] = frozenset(), *, repair: bool = False
    ) -> None:
        """A turn opened a segment over the current base.

        Args:
            turn: The turn.
            known: Lines that are in the file already and are noted as they are.
            repair: Whether its indentation is mended as it streams.

        Raises:
            UserError: The journal cannot be made.
            OSError: As the system says.
        """
        self._known[turn.path] = known
        self._first_turn()
        self._append("begin", turn=asdict(turn), repair=repair)

    def ask(self, turn: Turn) -> None:
        """A turn began in which the model names its places itself; raises as ``begin``."""
        self._first_turn()
        self._append("ask", turn=asdict(turn))

    def segment(
        self,
        path: str,
        start: int,
        stop: int,
        level: int,
        *,
        tight: bool,
        known: frozenset[str] = frozenset(),
    ) -> None:
        """Such a turn opened a segment."""
        self._known[path] = known
        self._append("segment", path=path, start=start, stop=stop, level=level, tight=tight)

    def withdraw(self, path: str, serial: int) -> None:
        """A segment was taken back."""
        self._unfinished.pop(path, None)
        self._append("withdraw", path=path, serial=serial)

    def absent(self, path: str) -> None:
        """From now on an empty text of a file means that there is no such file."""
        if self._journal is None and self._create is not None:
            self._absent.add(path)
        self._append("absent", path=path)

    def _first_turn(self) -> None:
        if self._journal is None and self._create is not None:
            self._journal = self._create()
            for path, (data, digest) in self._bases.items():
                self._append("base", path=path, data=pack(data), digest=digest)
            self._bases.clear()
            for path in sorted(self._absent):
                self._append("absent", path=path)

    def redirect(self, turn: Turn) -> None:
        """The frozen segment goes on under another turn."""
        self._append("redirect", turn=asdict(turn))

    def text(self, path: str, text: str) -> None:
        """Text was fed; it is noted by whole lines, so that credentials in them can be masked."""
        lines = (self._unfinished.pop(path, "") + text).split("\n")
        self._unfinished[path] = lines.pop()
        if lines:
            self._note_lines(path, "".join(f"{self._masked(path, line)}\n" for line in lines))

    def _masked(self, path: str, line: str) -> str:
        return line if line.rstrip("\r") in self._known.get(path, ()) else mask(line)

    def _note_lines(self, path: str, text: str) -> None:
        self._append("text", path=path, text=text)

    def mark(self, kind: str, path: str) -> None:
        """A segment was frozen, resumed, finished or abandoned."""
        if rest := self._unfinished.pop(path, ""):
            self._note_lines(path, self._masked(path, rest))
        self._append(kind, path=path)

    def end(self, turn: Turn) -> None:
        """A turn ended."""
        self._append("end", turn=asdict(turn))

    def decide(self, hunk_ids: Iterable[int], state: str, note: str) -> None:
        """Hunks were decided in one step."""
        self._append("decide", ids=list(hunk_ids), state=str(state), note=note)

    def decide_lines(self, hunk_id: int, start: int, stop: int, state: str, note: str) -> None:
        """Some lines of a hunk were decided in one step."""
        self._append(
            "decide_lines", id=hunk_id, start=start, stop=stop, state=str(state), note=note
        )

    def split(self, hunk_id: int, cuts: Iterable[tuple[int, int]]) -> None:
        """A hunk was split."""
        self._append("split", id=hunk_id, cuts=[list(cut) for cut in cuts])

    def edit(self, hunk_id: int, new: Iterable[str]) -> None:
        """The person wrote the new lines of a hunk."""
        self._append("edit", id=hunk_id, new=list(new))

    def quarantine(self, hunk_id: int, why: Quarantine) -> None:
        """The guard holds a hunk back."""
        self._append("quarantine", id=hunk_id, rule=why.rule, message=why.message)

    def release(self, hunk_id: int, reason: str) -> None:
        """A person let a quarantined hunk be decided after all."""
        self._append("release", id=hunk_id, note=reason)

    def travel(self, kind: str) -> None:
        """The last step was undone or redone."""
        self._append(kind)

    def writing(self, digests: Mapping[str, str | None]) -> None:
        """Files are about to be written so that they have these digests; on disk when this returns.

        Raises:
            OSError: The journal's disk is full or gone.
        """
        self._append("writing", digests=dict(digests))
        if self._journal is not None:
            self._journal.flush()

    def wrote(self, digests: Mapping[str, str | None]) -> None:
        """They were written."""
        self._append("wrote", digests=dict(digests))

    def close(self) -> None:
        """End the journal."""
        self._create = None
        if self._journal is not None:
            self._journal.close()

    def _append(self, kind: str, **data: object) -> None:
        if self._journal is not None:
            self._journal.append(kind, **data)
