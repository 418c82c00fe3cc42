"""A finished answer that breaks the file's syntax is said to do so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairing_support import SteppedModel

from midstream.edits.documents import SourceText
from midstream.edits.hunks import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.pairing.checking import newly_broken
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings

BEFORE = "def area(w, h):\n    return w * h\n"


def proposed(path: str, before: str, after: str) -> FileProposal:
    proposal = FileProposal(path, SourceText.from_text(before), HunkStore())
    proposal.begin(0, len(proposal.base.lines))
    proposal.feed(after)
    proposal.finish()
    return proposal


@pytest.mark.parametrize(
    ("path", "before", "after", "said"),
    [
        ("a.py", BEFORE, "def area(w, h):\n    return w * (h\n", "line 2"),
        ("a.py", BEFORE, "def area(w):\n    return w\n", ""),
        ("a.py", "def (:\n", "def ((:\n", ""),
        ("a.txt", BEFORE, "def (\n", ""),
    ],
)
def test_newly_broken(path: str, before: str, after: str, said: str) -> None:
    found = newly_broken(proposed(path, before, after))
    assert found.startswith(said)
    assert bool(found) == bool(said)


async def test_the_session_says_so(
    tmp_path: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel
) -> None:
    (tmp_path / "a.py").write_text(BEFORE)
    async with await PairingSession.open(
        tmp_path, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        for text in ("def area(w, h):\n", "    return w * (h\n", None):
            model.give(text)
        await session.instruct("change it", path="a.py", cursor=0)
        await session.finished()
        assert "does not parse (line 2" in session.notices[-1].text
        assert (tmp_path / "a.py").read_text() == BEFORE
