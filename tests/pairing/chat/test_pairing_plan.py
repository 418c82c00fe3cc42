"""Plans: steps as models write them, carried out as instructions, ticked off by decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.pairing.chat.plan import (
    MAX_STEP_LENGTH,
    MAX_STEPS,
    SessionPlan,
    StepState,
    steps_of,
    written_steps,
)
from midstream.pairing.journal.journal import earlier_sessions
from midstream.pairing.request.kinds import question_of, wish_of
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness

SHOP = "def total(rows):\n    return sum(rows)\n\n\ndef names(rows):\n    return list(rows)\n"
FILES = {"shop.py": SHOP}
PLAN = "Sure:\n\n1. **total**: skip None\n   - in shop.py\n2. names: sort them\n\nShall I begin?"
SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
STEPS = ["total: skip None in shop.py", "names: sort them"]
TOTAL = (
    "shop.py\n<<<<<<< SEARCH\n    return sum(rows)\n=======\n"
    "    return sum(row for row in rows if row is not None)\n>>>>>>> REPLACE\n"
)
NAMES = (
    "shop.py\n<<<<<<< SEARCH\n    return list(rows)\n=======\n"
    "    return sorted(rows)\n>>>>>>> REPLACE\n"
)


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        (PLAN, STEPS),
        ("1) one\n2) two", ["one", "two"]),
        ("**1.** one\n**2.** two", ["one", "two"]),
        (
            "1. fix A.__missing__\n2. __init__(x) and __del__",
            ["fix A.__missing__", "__init__(x) and __del__"],
        ),
        ("1. __add a test__ for x", ["add a test for x"]),
        ("### 1. One\n\n   more\n\n### Step 2: Two", ["One more", "Two"]),
        ("Step 1: one\nStep 2: two", ["one", "two"]),
        ("- [ ] one\n- [x] two", ["one", "two"]),
        ("1. one\n   1. a\n   2. b\n2. two", ["one a b", "two"]),
        ("1. one\ngoes on\n\nunrelated\n2. two", ["one goes on", "two"]),
        ("1. one\n```python\n2. not a step\n```\n2. two", ["one", "two"]),
        ("There is nothing to plan.", []),
        ("", []),
    ],
)
def test_steps_as_models_write_them(said: str, steps: list[str]) -> None:
    assert steps_of(said) == steps


@given(st.text())
def test_any_text_gives_steps_of_one_line(said: str) -> None:
    steps = steps_of(said)
    assert len(steps) <= MAX_STEPS
    assert all(step.strip() and len(step) <= MAX_STEP_LENGTH for step in steps)
    assert all(len(step.splitlines()) == 1 for step in steps)


@given(
    st.lists(st.from_regex(r"[a-z]+( [a-z0-9_.()]+){0,6}", fullmatch=True), min_size=1, max_size=9)
)
def test_an_edited_plan_is_read_as_it_was_written(steps: list[str]) -> None:
    text = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    assert steps_of(text) == steps
    if len(steps) > 1:  # In a plan of one line, a number within the line begins a second step.
        assert written_steps(text) == steps


def test_a_wish_is_no_list_and_no_question() -> None:
    assert wish_of("plan: add a cache") == "add a cache"
    assert wish_of(" Plan:\n1. a") == "1. a"
    assert wish_of("plan the release") == wish_of("plan:") == ""
    assert question_of("plan: why not a cache?") == ""
    assert written_steps("add a cache") == []
    assert written_steps("1. a\nand then?") == []


def test_one_line_holds_a_whole_list() -> None:
    assert written_steps("1. use f.py 2. add 3) numbers 3. go") == [
        "use f.py",
        "add 3) numbers",
        "go",
    ]
    assert written_steps("1. round to 2. places") == ["round to", "places"]
    assert written_steps("1. take 3. of them") == ["take 3. of them"]
    assert written_steps("2. second 3. third") == ["second 3. third"]


async def opened(
    hosted: Hosted, url: str, root: Path, resume: Path | None = None
) -> PairingSession:
    settings = hosted.settings(url, "search-replace", related_code=False)
    return await PairingSession.open(root, settings=settings, watch=False, resume=resume)


@pytest.fixture
async def session(hosted: Hosted, url: str, root: Path) -> AsyncIterator[PairingSession]:
    async with await opened(hosted, url, root) as session:
        yield session


@pytest.fixture
def plan(session: PairingSession) -> SessionPlan:
    """The plan of the session, of which nothing was done yet."""
    session.chat.steps.replace(STEPS)
    return session.chat.steps


def answer(hosted: Hosted, text: str) -> None:
    hosted.say(text)
    hosted.end()


async def send(session: PairingSession) -> None:
    """Send the next step of the plan."""
    await session.turns.instruct(Question(session.chat.steps.next, path="shop.py", cursor=0))


async def carry_out(session: PairingSession, hosted: Hosted, text: str) -> None:
    answer(hosted, text)
    await send(session)
    await session.turns.finished()


async def test_a_plan_is_carried_out_step_by_step(
    session: PairingSession, hosted: Hosted, root: Path
) -> None:
    answer(hosted, PLAN)
    await session.chat.ask_question(Question("make it robust", path="shop.py"), plan=True)
    await session.chat.finished()
    plan = session.chat.steps
    assert [step.text for step in plan.steps] == STEPS
    assert "Write no code" in str(hosted.creates[-1]["instructions"])
    assert "2 steps" in session.status.notices[-1].text
    assert (root / "shop.py").read_text() == SHOP

    await carry_out(session, hosted, TOTAL)
    assert plan.states() == [StepState.BEGUN, StepState.OPEN]
    assert "1. total: skip None in shop.py" in str(hosted.creates[-1]["input"])
    (hunk,) = session.hunks.undecided()
    await session.decisions.accept(hunk.id)
    assert plan.states() == [StepState.DONE, StepState.OPEN]
    assert session.status.notices[-1].action == "plan.next"
    assert await session.decisions.undo()
    assert plan.states() == [StepState.BEGUN, StepState.OPEN]
    assert await session.decisions.redo()

    await carry_out(session, hosted, NAMES)
    assert "(done)" in str(hosted.creates[-1]["input"])
    (hunk,) = session.hunks.undecided()
    await session.decisions.reject(hunk.id)
    assert plan.states() == [StepState.DONE, StepState.NOTHING]
    assert plan.next == ""
    assert "return sorted" not in (root / "shop.py").read_text()


async def test_a_plan_that_comes_back_as_it_was_stays(session: PairingSession) -> None:
    plan = session.chat.steps
    plan.replace(["Bump the schema to version 2. of it"])
    assert plan.write(plan.text)
    assert [step.text for step in plan.steps] == ["Bump the schema to version 2. of it"]
    assert not plan.write("add a cache")
    assert plan.write("1. add a cache 2. use it")
    assert [step.text for step in plan.steps] == ["add a cache", "use it"]


async def test_a_redirect_within_a_step_does_not_end_it(
    session: PairingSession, hosted: Hosted, plan: SessionPlan
) -> None:
    hosted.say("shop.py\n<<<<<<< SEARCH\n")
    await send(session)
    answer(hosted, NAMES)
    await session.turns.redirect("sort the names first")
    await session.turns.finished()
    assert not [each.text for each in session.status.notices if "Step 1" in each.text]
    assert plan.states() == [StepState.BEGUN, StepState.OPEN]
    (hunk,) = session.hunks.undecided()
    await session.decisions.accept(hunk.id)
    assert session.status.notices[-1].text == "Step 1 of the plan is done; 1 step to go."


async def test_a_step_that_was_stopped_is_the_next_one_again(
    session: PairingSession, hosted: Hosted, plan: SessionPlan
) -> None:
    hosted.say("shop.py\n<<<<<<< SEARCH\n")
    await send(session)
    assert plan.next == STEPS[1]
    await session.turns.stop_turn()
    assert plan.states() == [StepState.OPEN, StepState.OPEN]
    assert not session.status.notices
    await carry_out(session, hosted, TOTAL)
    assert plan.states() == [StepState.BEGUN, StepState.OPEN]


async def test_a_later_step_takes_no_tick_away(
    session: PairingSession, hosted: Hosted, plan: SessionPlan
) -> None:
    await carry_out(session, hosted, NAMES)
    (hunk,) = session.hunks.undecided()
    await session.decisions.accept(hunk.id)
    await carry_out(session, hosted, NAMES.replace("sorted", "set").replace("list", "sorted"))
    assert plan.states() == [StepState.DONE, StepState.BEGUN]
    assert await session.decisions.undo()
    assert await session.decisions.redo()
    assert plan.states() == [StepState.DONE, StepState.BEGUN]


async def test_a_step_that_is_sent_while_another_is_written_is_not_part_of_that(
    session: PairingSession, hosted: Hosted, plan: SessionPlan
) -> None:
    witness = Witness(session)
    hosted.say(NAMES + "\nand")
    await send(session)
    (hunk_id,) = await witness.decidable(1)
    await session.decisions.accept(hunk_id)
    await session.turns.redirect(plan.next)
    await session.turns.stop_turn()
    assert plan.states() == [StepState.DONE, StepState.OPEN]


async def test_an_edited_plan_keeps_what_was_done_and_is_resumed(
    hosted: Hosted, url: str, root: Path
) -> None:
    async with await opened(hosted, url, root) as session:
        session.chat.steps.replace(STEPS)
        await carry_out(session, hosted, TOTAL)
        (hunk,) = session.hunks.undecided()
        await session.decisions.accept(hunk.id)
        session.chat.steps.replace([STEPS[1], f"names: use {SECRET}", STEPS[0]])
        expected = [StepState.OPEN, StepState.OPEN, StepState.DONE]
        assert session.chat.steps.states() == expected
    (earlier,) = earlier_sessions(root)
    assert SECRET[8:] not in earlier.path.read_text()
    async with await opened(hosted, url, root, earlier.path) as session:
        assert session.chat.steps.states() == expected
        assert session.chat.plan is not None
        await session.chat.clear()
        assert session.chat.plan is None
    async with await opened(hosted, url, root, earlier.path) as session:
        assert not session.chat.steps


async def test_an_answer_without_steps_is_no_plan(session: PairingSession, hosted: Hosted) -> None:
    session.chat.steps.replace(STEPS)
    answer(hosted, "I cannot plan this.")
    await session.chat.ask_question(Question("everything", path="shop.py"), plan=True)
    await session.chat.finished()
    assert "no numbered steps" in str(session.chat.entries[-1])
    assert [step.text for step in session.chat.steps.steps] == STEPS


async def test_a_step_is_settled_when_all_parts_of_its_hunk_are(
    session: PairingSession, hosted: Hosted, plan: SessionPlan
) -> None:
    await carry_out(
        session,
        hosted,
        "shop.py\n<<<<<<< SEARCH\ndef total(rows):\n    return sum(rows)\n=======\n"
        "def total(items):\n    return sum(items)\n>>>>>>> REPLACE\n",
    )
    (hunk,) = session.hunks.undecided()
    first, second = await session.decisions.split(hunk.id, [(1, 1)])
    await session.decisions.accept(first)
    assert plan.states()[0] is StepState.BEGUN
    await session.decisions.reject(second)
    assert plan.states()[0] is StepState.DONE
