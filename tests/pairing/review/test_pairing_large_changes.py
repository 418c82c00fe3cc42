"""A large file that another program changes is read and compared away from the event loop."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

from midstream.edits import stand_ins
from midstream.pairing.session import PairingSession
from midstream.workspace import content

LARGE = "a line with a word or two in it\n" * 60_000
COMMITTED = {"old.txt": LARGE, "gone.txt": LARGE.upper()}


@pytest.fixture
def in_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done with much content in the thread of the event loop."""
    done: list[str] = []
    loop, described = threading.current_thread(), stand_ins._described

    def noted(what: str, data: bytes | None) -> None:
        if len(data or b"") > 1_000_000 and threading.current_thread() is loop:
            done.append(what)

    class Hashes:
        @staticmethod
        def blake2b(data: bytes, **options: Any) -> Any:
            noted("digest", data)
            return hashlib.blake2b(data, **options)

    def describe(properties: stand_ins.FileProperties) -> str:
        noted("description", properties.data)
        return described(properties)

    monkeypatch.setattr(content, "hashlib", Hashes)
    monkeypatch.setattr(stand_ins, "_described", describe)
    return done


async def test_what_takes_long_is_done_in_threads(
    root: Path, session: PairingSession, in_loop: list[str]
) -> None:
    await session.review.switch_on(since_commit=True)
    (root / "old.txt").write_text(LARGE.replace("word", "verb"))
    (root / "new.txt").write_text(LARGE.replace("a line", "a new line"))
    (root / "gone.txt").unlink()
    names = {"old.txt", "new.txt", "gone.txt"}
    await session.review.changed(names)
    assert {hunk.path for hunk in session.hunks.undecided()} == names
    (root / "old.txt").write_text(LARGE.replace("word", "noun"))
    await session.review.changed({"old.txt"})
    assert len(session.hunks.undecided()) == 3
    assert in_loop == []
