"""What the session asks by itself: AI! comments, follow-on edits of a save, the same elsewhere."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.edits.request import parse_request
from midstream.engine.types import GenerateRequest
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.serving.replay import ReplayModel
from midstream.settings import Settings
from tests.helpers.pairing import Witness, make_repo, save
from tests.helpers.stepped import served

TALLY = """\
RATE = 3


def load(path):
    rows = read(path)
    for row in rows:
        row.cost = RATE
    return rows


def total(rows):
    return sum(row.cost for row in rows)


def largest(rows):
    return max(row.cost for row in rows)
"""
USER = "from tally import RATE\n\n\ndef show():\n    print(RATE)\n"


def renamed(request: GenerateRequest) -> str:
    """The region with the names of the instruction exchanged, as a model would."""
    asked = parse_request(request.messages[-1].text)
    assert asked is not None
    assert "AI!" not in asked.region
    names = re.search(r"rename `?(\w+)`? to `?(\w+)`?", asked.instruction)
    return asked.region if names is None else re.sub(rf"\b{names[1]}\b", names[2], asked.region)


@pytest.fixture
async def session(tmp_path: Path, state: Path) -> AsyncIterator[PairingSession]:
    root = make_repo(tmp_path / "p", {"tally.py": TALLY, "user.py": USER})
    model = ReplayModel(renamed, facts={"prompt": "edit-rewrite", "languages": "python"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(root, settings=Settings(), endpoint=endpoint) as session,
    ):
        witness = Witness(session)
        await witness.until(lambda: session.external.watching == "native")
        yield session


def proposed(session: PairingSession) -> dict[str, list[str]]:
    """New lines of undecided hunks by file."""
    lines: dict[str, list[str]] = {}
    for hunk in session.hunks.undecided():
        lines.setdefault(hunk.path, []).extend(line.strip() for line in hunk.new)
    return lines


async def quiet(session: PairingSession, witness: Witness) -> None:
    """Wait until a turn has run and nothing waits any more."""
    await witness.until(lambda: bool(session.turns) and not session.background.waiting)
    await session.turns.finished()


async def test_a_saved_comment_is_carried_out_and_taken_out(session: PairingSession) -> None:
    witness = Witness(session)
    path = session.root / "tally.py"
    asked = TALLY.replace("def total(", "# rename rows to entries AI!\ndef total(")
    save(path, asked)
    await quiet(session, witness)
    hunks = session.hunks.undecided("tally.py")
    assert [hunk.old[0] for hunk in hunks] == ["# rename rows to entries AI!"]
    assert "".join(hunk.new[0] for hunk in hunks) == "def total(entries):"
    turn = session.turns[0]
    assert turn.background
    assert turn.symbol == "total" or turn.start == 10
    assert await session.decisions.accept_rest("tally.py")
    assert path.read_text() == TALLY.replace(
        "total(rows):\n    return sum(row.cost for row in rows)",
        "total(entries):\n    return sum(row.cost for row in entries)",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def total(", "# rename rows to entries AI!\ndef total("),
        ("def total(rows):", "def total(rows):  # rename rows to entries AI!"),
    ],
)
async def test_a_comment_is_carried_out_in_a_review(
    session: PairingSession, before: str, after: str
) -> None:
    """Its own line is a change that waits for a decision, too."""
    witness = Witness(session)
    path = session.root / "tally.py"
    await session.review.switch_on(since_commit=True)
    save(path, TALLY.replace(before, after).replace("RATE = 3", "RATE = 4"))
    await quiet(session, witness)
    waiting = session.hunks.undecided("tally.py")
    assert {hunk.new for hunk in waiting if hunk.external} == {("RATE = 4",)}
    assert proposed(session)["tally.py"][1] == "def total(entries):"
    assert await session.decisions.accept_all([hunk.id for hunk in waiting])
    assert path.read_text() == TALLY.replace("RATE = 3", "RATE = 4").replace(
        "total(rows):\n    return sum(row.cost for row in rows)",
        "total(entries):\n    return sum(row.cost for row in entries)",
    )


async def test_a_comment_beside_other_changes_of_its_lines_asks_for_a_decision_first(
    session: PairingSession,
) -> None:
    witness = Witness(session)
    await session.review.switch_on(since_commit=True)
    asked = "def total(rows, most):  # rename rows to entries AI!"
    save(session.root / "tally.py", TALLY.replace("def total(rows):", asked))
    await witness.until(lambda: "then ask again" in witness.notice)
    (hunk,) = session.hunks.undecided("tally.py")
    assert hunk.external
    assert hunk.new == (asked,)
    assert not session.turns


async def test_a_comment_is_carried_out_once(session: PairingSession) -> None:
    witness = Witness(session)
    path = session.root / "tally.py"
    asked = TALLY.replace("def total(rows):", "def total(rows):  # rename rows to entries AI!")
    save(path, asked)
    await quiet(session, witness)
    save(path, asked + "\n\nOTHER = 1\n")
    await witness.until(lambda: "OTHER = 1" in session.files["tally.py"].base.lines)
    await asyncio.sleep(0.1)
    assert len(session.turns) == 1


async def test_comments_saved_while_the_model_works_wait_their_turn(
    session: PairingSession,
) -> None:
    witness = Witness(session)
    session.turns.queue("rename cost to price in largest")
    save(
        session.root / "user.py",
        USER.replace("def show():", "# rename RATE to FACTOR AI!\ndef show():"),
    )
    save(
        session.root / "tally.py",
        TALLY.replace("def load(path):", "# ai! rename path to name\ndef load(path):"),
    )
    await witness.until(lambda: len(session.turns) >= 3 and not session.background.waiting)
    await session.turns.finished()
    found = proposed(session)
    assert "def load(name):" in found["tally.py"]
    assert "print(FACTOR)" in found["user.py"]
    assert "return max(row.price for row in rows)" in found["tally.py"]


async def test_a_question_is_not_for_a_model_that_only_edits(session: PairingSession) -> None:
    witness = Witness(session)
    save(session.root / "user.py", USER + "# why so dear AI?\n")
    await witness.until(lambda: "AI?" in witness.notice)
    assert "--endpoint" in witness.notice
    assert not session.turns


async def test_comments_can_be_left_alone(session: PairingSession) -> None:
    session.background.comments = False
    witness = Witness(session)
    await session.files.open("user.py")
    save(session.root / "user.py", USER + "# rename RATE to FACTOR AI!\n")
    await witness.until(lambda: len(session.files["user.py"].base.lines) > 5)
    await asyncio.sleep(0.1)
    assert not session.turns


@pytest.mark.system
async def test_a_saved_rename_is_followed_in_the_whole_file(session: PairingSession) -> None:
    witness = Witness(session)
    await session.background.set_continuous(on=True)
    path = session.root / "tally.py"
    save(path, TALLY.replace("row.cost = RATE", "row.price = RATE"))
    await quiet(session, witness)
    assert proposed(session) == {
        "tally.py": [
            "return sum(row.price for row in rows)",
            "return max(row.price for row in rows)",
        ]
    }
    assert path.read_text().count("price") == 1


async def test_a_rename_of_a_global_reaches_other_files(session: PairingSession) -> None:
    witness = Witness(session)
    await session.background.set_continuous(on=True)
    path = session.root / "tally.py"
    save(path, TALLY.replace("RATE = 3", "FACTOR = 3"))
    await quiet(session, witness)
    assert proposed(session) == {
        "tally.py": ["row.cost = FACTOR"],
        "user.py": ["from tally import FACTOR", "print(FACTOR)"],
    }


async def test_without_continuous_mode_a_save_asks_nothing(session: PairingSession) -> None:
    witness = Witness(session)
    await session.files.open("tally.py")
    save(session.root / "tally.py", TALLY.replace("row.cost = RATE", "row.price = RATE"))
    await witness.until(lambda: "    row.price" in "\n".join(session.files["tally.py"].base.lines))
    await asyncio.sleep(0.1)
    assert not session.turns


async def test_own_writes_are_no_change_to_follow(session: PairingSession) -> None:
    witness = Witness(session)
    await session.background.set_continuous(on=True)
    await session.turns.instruct(Question("rename cost to price in largest", path="tally.py"))
    (hunk,) = await witness.decidable(1)
    await session.decisions.accept(hunk)
    save(session.root / "tally.py", (session.root / "tally.py").read_text() + "\nX = 1\n")
    await witness.until(lambda: "X = 1" in session.files["tally.py"].base.lines)
    await asyncio.sleep(0.1)
    assert len(session.turns) == 1


@pytest.mark.system
async def test_the_same_elsewhere(session: PairingSession) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rename cost to price in largest", path="tally.py"))
    (hunk,) = await witness.decidable(1)
    assert await session.background.elsewhere(hunk) == 1
    await witness.until(lambda: not session.background.waiting)
    assert proposed(session)["tally.py"] == [
        "row.price = RATE",
        "return sum(row.price for row in rows)",
        "return max(row.price for row in rows)",
    ]
    assert session.hunks.get(hunk).decidable


async def test_an_import_line_needs_no_model(tmp_path: Path, state: Path) -> None:
    user = "from tally import load, RATE\n\n\ndef show():\n    print(load(RATE))\n"
    root = make_repo(tmp_path / "p", {"tally.py": TALLY, "user.py": user})

    def timid(request: GenerateRequest) -> str:
        asked = parse_request(request.messages[-1].text)
        assert asked is not None
        return asked.region if "import" in asked.region else renamed(request)

    model = ReplayModel(timid, facts={"prompt": "edit-rewrite", "languages": "python"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(root, settings=Settings(), endpoint=endpoint) as session,
    ):
        witness = Witness(session)
        session.turns.effort = "medium"
        await session.turns.instruct(Question("rename load to read_all in load", path="tally.py"))
        (hunk,) = await witness.decidable(1)
        await session.decisions.accept(hunk)
        await session.background.elsewhere(hunk)
        await witness.until(lambda: not session.background.waiting)
        await session.turns.finished()
        wanted = user.replace("load", "read_all")
        assert session.files["user.py"].proposed_region(0, 5) == wanted
        assert not any(" left " in notice.text for notice in session.status.notices)


async def test_nothing_elsewhere_is_said(session: PairingSession) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rename rows to entries in largest", path="tally.py"))
    (hunk,) = await witness.decidable(1)
    assert await session.background.elsewhere(hunk) == 0
    assert "No other place" in witness.notice


@pytest.mark.system
async def test_an_attribute_is_asked_for_in_other_files_only_where_a_person_asks(
    session: PairingSession,
) -> None:
    save(session.root / "user.py", "def show(bill):\n    print(bill.cost)\n")
    witness = Witness(session)
    await session.background.set_continuous(on=True)
    save(session.root / "tally.py", TALLY.replace("row.cost = RATE", "row.price = RATE"))
    await quiet(session, witness)
    assert set(proposed(session)) == {"tally.py"}
    await session.turns.instruct(Question("rename total to together in total", path="tally.py"))
    await session.turns.finished()
    ids = [hunk.id for hunk in session.hunks.undecided("tally.py")]
    hunk = next(i for i in ids if "max(" in session.hunks.get(i).new[0])
    await session.background.elsewhere(hunk)
    await witness.until(lambda: not session.background.waiting)
    assert proposed(session)["user.py"] == ["print(bill.price)"]


@pytest.mark.system
async def test_why_a_change_is_asked_for_nowhere_else(session: PairingSession) -> None:
    witness = Witness(session)
    await session.turns.instruct(
        Question("rename cost to price", path="tally.py", selection=(10, 16))
    )
    first, second = await witness.decidable(2)
    await session.turns.finished()
    await session.turns.instruct(Question("rename row to line", path="tally.py", selection=(3, 8)))
    await session.turns.finished()
    assert await session.background.elsewhere(first) == 0
    assert witness.notice == (
        "This change is wanted in `load` as well, where a hunk waits already; decide that first."
    )
    for hunk in session.hunks.undecided("tally.py"):
        if hunk.id not in (first, second):
            await session.decisions.reject(hunk.id)
    session.server.model_info = replace(session.server.model_info, max_region_lines=2)
    await session.decisions.accept(second)
    assert await session.background.elsewhere(first) == 0
    assert witness.notice.startswith("This change is wanted in `load` as well, which has more than")


async def test_a_stop_drops_what_waits(session: PairingSession) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rename cost to price in largest", path="tally.py"))
    (hunk,) = await witness.decidable(1)
    await session.background.elsewhere(hunk)
    await session.turns.stop_turn()
    assert "1 background edit was cancelled" in witness.notice
    assert not session.background.waiting


async def test_a_person_comes_before_an_errand(session: PairingSession) -> None:
    witness = Witness(session)
    await session.background.set_continuous(on=True)
    save(session.root / "tally.py", TALLY.replace("row.cost = RATE", "row.price = RATE"))
    await witness.until(lambda: session.turns.in_background)
    turn = await session.turns.instruct(Question("rename RATE to FACTOR in show", path="user.py"))
    assert not turn.background
    await witness.until(lambda: not session.background.waiting)
    await session.turns.finished()
    assert proposed(session)["user.py"] == ["print(FACTOR)"]
    assert len(proposed(session)["tally.py"]) == 2


@pytest.mark.system
async def test_where_nobody_said_anything_other_words_are_no_way_out(
    tmp_path: Path, state: Path
) -> None:
    def idle(request: GenerateRequest) -> str:
        asked = parse_request(request.messages[-1].text)
        assert asked is not None
        return asked.region

    # With a second `cost` in the project the model is asked which one is meant.
    user = f"{USER}\n\nclass Bill:\n    cost = 1\n"
    root = make_repo(tmp_path / "p", {"tally.py": TALLY, "user.py": user})
    model = ReplayModel(idle, facts={"prompt": "edit-rewrite", "languages": "python"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(root, settings=Settings(), endpoint=endpoint) as session,
    ):
        witness = Witness(session)
        await witness.until(lambda: session.external.watching == "native")
        await session.background.set_continuous(on=True)
        save(root / "tally.py", TALLY.replace("row.cost = RATE", "row.price = RATE"))
        await witness.until(lambda: "is still there" in witness.notice)
        assert ": change it by hand, ask there in your own words, or ask a" in witness.notice
        await quiet(session, witness)
        await session.turns.instruct(Question("rename RATE to FACTOR in show", path="user.py"))
        await witness.until(lambda: "user.py, and" in witness.notice)
        assert "say it in other words, or ask a larger model" in witness.notice
