"""A notice says that a finished answer breaks the file's syntax."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from midstream.code.syntax import syntax_error
from midstream.codebase.syntax_check import AT_ONCE, where_broken
from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.turn.checks import newly_broken
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.stepped import SteppedModel

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
        ("a.go", "package a\n", "package a\n\nfunc f( {}\n", "line 3: "),
        ("a.go", "package a\n\nfunc f( {}\n", "package a\n\nfunc f( {}\n\nvar x = 1\n", ""),
    ],
)
async def test_newly_broken(path: str, before: str, after: str, said: str) -> None:
    found = await newly_broken(proposed(path, before, after))
    assert found.startswith(said)
    assert bool(found) == bool(said)


LONG = "value = compute(1)\n" * (AT_ONCE // 18 + 1)


@pytest.mark.parametrize(
    "text", [LONG, f"{LONG}def (:\n", f"{LONG}\0", f'{LONG}x = "\ud800"\n', f"{LONG}# é\nx = ¿\n"]
)
async def test_a_long_text_is_read_elsewhere_with_the_same_result(text: str) -> None:
    assert len(text) > AT_ONCE
    assert await where_broken("a.py", text) == syntax_error(text)


async def test_keys_are_answered_while_a_long_text_is_read() -> None:
    """No thread of this process holds the interpreter meanwhile."""
    used = time.process_time()
    assert not await where_broken("a.py", LONG * 60)
    assert time.process_time() - used < 0.5 * _seconds_to_parse(LONG * 60)


def _seconds_to_parse(text: str) -> float:
    began = time.process_time()
    syntax_error(text)
    return time.process_time() - began


async def test_without_processes_it_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    text = f"{LONG}def (:\n"
    assert await where_broken("a.py", text) == syntax_error(text) != ""


async def test_a_text_that_ends_the_process_is_not_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert await where_broken("a.py", LONG) == "it cannot be read as Python"


async def test_the_session_says_so(
    tmp_path: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel
) -> None:
    (tmp_path / "a.py").write_text(BEFORE)
    async with await PairingSession.open(
        tmp_path, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        for text in ("def area(w, h):\n", "    return w * (h\n", None):
            model.give(text)
        await session.turns.instruct(Question("change it", path="a.py", cursor=0))
        await session.turns.finished()
        assert "does not parse (line 2" in session.status.notices[-1].text
        assert (tmp_path / "a.py").read_text() == BEFORE
