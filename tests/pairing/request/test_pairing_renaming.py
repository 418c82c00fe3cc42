"""Another name for a rename: while the model writes, and when it has written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.pairing.request.question import Question
from midstream.pairing.request.renaming import Renaming, plain_rename, renamed_again
from midstream.pairing.session import PairingSession
from midstream.pairing.status import TurnStatus
from midstream.settings import Settings
from tests.helpers.pairing import Witness, follow_ups
from tests.helpers.stepped import SteppedModel

BEFORE = """\
def tally(items):
    total = 0
    seen = set()
    for item in items:
        total += item.count
        seen.add(item)
    print(total)
    return total
"""
FILES = {"a.py": BEFORE}
AFTER = BEFORE.replace("total", "amount")
ASKED = "rename total to amount in tally"
LINES, GIVEN = BEFORE.splitlines(), AFTER.splitlines()


@pytest.mark.parametrize(
    "said",
    [
        "rename total to money",
        "rename `total` to `money` instead",
        "no, call it money please",
        "rename amount to money",
        "actually, name the variable `money`!",
        "sorry, `money` is better",
        "money would be better",
        "better: money",
    ],
)
def test_a_sentence_that_only_asks_for_another_name(said: str) -> None:
    assert renamed_again(said, ASKED, LINES, GIVEN) == Renaming("amount", "money")


@pytest.mark.parametrize(
    "said",
    [
        "rename total to money and add a docstring",
        "call it only once",
        "call it money in the loop",
        "rename items to things",
        "rename total to amount",
        "rename amount to total",
        "make it quicker",
        "this is better",
        "shorter would be better",
        "better, faster",
        "money is better because it is shorter",
    ],
)
def test_a_sentence_that_asks_for_anything_else(said: str) -> None:
    assert renamed_again(said, ASKED, LINES, GIVEN) is None


def test_a_rewrite_that_brings_in_another_name_or_several() -> None:
    twice = [line.replace("items", "things") for line in GIVEN]
    both = "rename total to amount and items to things"
    assert renamed_again("call it money", both, LINES, twice) is None
    # `item` is in the file already, so the renamed places cannot be told from it.
    known = [line.replace("total", "item") for line in LINES]
    assert renamed_again("call it money", "rename total to item", LINES, known) is None
    # Nobody asked for that name.
    assert renamed_again("call it money", "find a better name", LINES, GIVEN) is None
    # A word of a docstring is no name.
    said = [LINES[0], '    """Return the amount."""', *LINES[1:]]
    assert renamed_again("call it money", "add a docstring: return the amount", LINES, said) is None


def test_a_name_of_something_new() -> None:
    asked = "add a parameter limit with default None to tally"
    after = [LINES[0].replace("items", "items, limit=None"), *LINES[1:4]]
    assert renamed_again("call the parameter most", asked, LINES, after) == Renaming(
        "limit", "most"
    )


@given(st.text("amount_ .x\n", max_size=60))
def test_only_whole_names_are_replaced(text: str) -> None:
    applied = Renaming("amount", "money").applied(text)
    assert re.split(r"\bmoney\b", applied) == re.split(r"\bamount\b", text)


async def start(session: PairingSession, model: SteppedModel) -> Witness:
    witness = Witness(session)
    await session.turns.instruct(Question("rename total to amount in tally", path="a.py"))
    model.give("".join(AFTER.splitlines(keepends=True)[:6]) + "    print(am")
    await witness.decidable(2)
    return witness


async def test_a_redirect_gives_what_is_kept_the_new_name(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = await start(session, model)
    await session.turns.read_ahead(Question("call it money instead", path="a.py"))
    await witness.until(lambda: model.ahead)
    turn = await session.turns.redirect("call it money instead")
    assert turn.instruction == "call it money instead"
    # At once, before the model says anything more.
    assert [hunk.new for hunk in session.hunks.undecided()] == [
        ("    money = 0",),
        ("        money += item.count",),
    ]
    await witness.until(lambda: len(model.requests) == 2)
    assert model.request.messages == model.ahead[-1].messages
    assert follow_ups(model.request) == ["rename total to money in tally"]
    assert "amount" not in model.request.messages[-2].text
    model.give("    print(money)\n    return money\n")
    model.end()
    await session.turns.finished()
    await session.decisions.accept_rest("a.py")
    assert (root / "a.py").read_text() == BEFORE.replace("total", "money")


async def test_it_can_be_redirected_again_and_again(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = await start(session, model)
    for count, name in enumerate(("money", "cash", "sum_"), 2):
        await session.turns.redirect(f"call it {name}")
        await witness.until(lambda count=count: len(model.requests) == count)
        assert follow_ups(model.request) == [f"rename total to {name} in tally"]
    assert model.request.messages[-2].text.count("sum_") == 2
    assert len(model.request.messages) == 3
    model.give("    print(sum_)\n    return sum_\n")
    model.end()
    await session.turns.finished()
    await session.decisions.accept_rest("a.py")
    assert (root / "a.py").read_text() == BEFORE.replace("total", "sum_")


async def test_what_was_accepted_is_proposed_anew_and_stays_until_then(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = await start(session, model)
    first, _ = await witness.decidable(2)
    await session.decisions.accept(first)
    written = (root / "a.py").read_text()
    assert written == BEFORE.replace("total = 0", "amount = 0")
    await session.turns.redirect("rename total to money")
    await witness.until(lambda: len(model.requests) == 2)
    assert (root / "a.py").read_text() == written
    model.give("    print(money)\n    return money\n")
    model.end()
    await session.turns.finished()
    assert next(iter(session.hunks.undecided())).old == ("    amount = 0",)
    await session.decisions.accept_rest("a.py")
    assert (root / "a.py").read_text() == BEFORE.replace("total", "money")


async def test_what_was_turned_down_is_not_proposed_again(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = await start(session, model)
    first, _ = await witness.decidable(2)
    await session.decisions.reject(first)
    await session.turns.redirect("rename total to money")
    await witness.until(lambda: len(model.requests) == 2)
    # The redirect in its own words, behind the kept lines.
    assert follow_ups(model.request) == ["rename total to money"]
    assert "amount += " in model.request.messages[-2].text
    model.end()
    await session.turns.finished()


async def test_a_part_that_was_turned_down_is_not_proposed_again(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rename total to amount in tally", path="a.py"))
    lines = AFTER.replace("seen = set()", "seen = set(amount)").splitlines(keepends=True)
    model.give("".join(lines[:4]))
    (first,) = await witness.decidable(1)
    await session.decisions.decide_lines(first, 3, 4, accept=False)
    await session.turns.redirect("rename total to money")
    await witness.until(lambda: len(model.requests) == 2)
    assert follow_ups(model.request) == ["rename total to money"]
    model.end()
    await session.turns.finished()


async def test_what_the_person_wrote_into_a_rename_is_not_lost(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = await start(session, model)
    first, _ = await witness.decidable(2)
    await session.decisions.edit(first, ["    amount = 100"])
    await session.turns.redirect("call it money")
    await witness.until(lambda: len(model.requests) == 2)
    assert follow_ups(model.request) == ["call it money"]
    model.end()
    await session.turns.finished()
    await session.decisions.accept(first)
    assert "    amount = 100\n" in (root / "a.py").read_text()


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("rename total to money in tally", "rename amount to money in tally"),
        ("no, call it money", "rename `amount` to `money`"),
        ("rename total to money and add a docstring", "rename amount to money and add a docstring"),
        ("rename items to things", "rename items to things"),
        ("rename seen to known", "rename seen to known"),
        ("rename total to amount", "rename total to amount"),
    ],
)
async def test_after_the_answer_what_the_file_calls_it_is_understood(
    session: PairingSession, model: SteppedModel, said: str, asked: str
) -> None:
    witness = await start(session, model)
    model.give("ount)\n    return amount\n")
    model.end()
    await session.turns.finished()
    turn = await session.turns.instruct(Question(said, path="a.py", cursor=1))
    await witness.until(lambda: len(model.requests) == 2)
    assert turn.instruction == said
    assert model.region == AFTER
    assert model.asked == asked
    model.end()
    await session.turns.finished()


@pytest.mark.parametrize(
    "said",
    [
        "rename total to amount",
        "Rename the local variable `total` to `amount`.",
        "please rename all uses of total in tally to amount",
        "rename total to amount in the tally()",
        "rename the total parameter of tally to amount everywhere, please",
    ],
)
def test_an_instruction_that_is_a_rename_and_nothing_else(said: str) -> None:
    assert plain_rename(said) == ("total", "amount")


@pytest.mark.parametrize(
    "said",
    [
        "rename total to amount and add a docstring",
        "rename total",
        "rename a.total to amount",
        "total to amount",
        "rename total to amount in tally and in count",
        "do not rename total to amount",
    ],
)
def test_more_or_less_than_a_plain_rename(said: str) -> None:
    assert plain_rename(said) is None


async def test_the_built_in_model_is_not_asked_for_a_rename_that_is_certain(
    copyist: Path, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    text = BEFORE + "\n\ndef area(width):\n    return width\n\n\narea(width=1)\n"
    (root / "a.py").write_text(text)
    settings = Settings(model=copyist)
    async with await PairingSession.open(root, settings=settings, journal=False) as session:
        for said, line, flagged in [(ASKED, 1, False), ("rename width to w", 13, True)]:
            turn = await session.turns.instruct(Question(said, "a.py", line))
            await session.turns.finished()
            assert (turn.status, turn.tokens) == (TurnStatus.DONE, 0)
            hunks = session.hunks.undecided("a.py")
            assert [bool(session.reason(hunk)) for hunk in hunks] == [flagged] * len(hunks)
            await session.decisions.accept_all({hunk.id for hunk in hunks}, anyway=True)
        assert "Line 15 of a.py passes `width=`." in turn.unsure
    changed = text.replace("total", "amount").replace(
        "(width):\n    return width", "(w):\n    return w"
    )
    assert (root / "a.py").read_text() == changed
