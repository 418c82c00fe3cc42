"""Pairing sessions over a real server, WebSocket and files; only the model's pace is ours."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.errors import UnavailableError
from midstream.pairing.chat.entries import AnsweredQuestion, exchanges
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, SessionState, TurnStatus
from midstream.pairing.status import (
    FileOpened,
    HunkSettled,
    TurnFinished,
    TurnStarted,
)
from midstream.responses.endpoint import Endpoint
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from tests.helpers.pairing import Witness, follow_ups
from tests.helpers.repositories import git
from tests.helpers.rewriting import BEFORE, give, rewrite
from tests.helpers.stepped import PROMPT_TOKENS, SteppedModel, served


async def test_one_change_from_instruction_to_disk(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    lines = rewrite((2, "    second = work(2)\n"), (20, "    twentieth = work(20)\n"))
    give(model, lines)
    model.end()
    turn = await session.turns.instruct(Question("speed it up", path="run.py", cursor=3))
    assert turn is session.turns.last
    assert (turn.path, turn.start, turn.stop, turn.symbol) == ("run.py", 0, 40, "run")
    await session.turns.finished()
    assert turn.status is TurnStatus.DONE
    assert session.status.state is SessionState.READY
    assert model.region == BEFORE
    assert (root / "run.py").read_text() == BEFORE, "nothing is written without an accept"
    assert [type(e) for e in witness.events if isinstance(e, (TurnStarted, TurnFinished))] == [
        TurnStarted,
        TurnFinished,
    ]
    assert witness.count(FileOpened) == 1
    assert witness.count(HunkSettled) == 2
    assert await session.decisions.accept(1)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    second = work(2)\n")))
    assert await session.decisions.reject(2, "no")
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    second = work(2)\n")))
    assert turn.tokens == len(lines)
    assert turn.ttft_s is not None
    assert session.status.meter.output_tokens == len(lines)
    assert session.status.meter.input_tokens == PROMPT_TOKENS


async def test_a_repository_that_cannot_be_read_is_told_on_opening(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    git(root, "init", "-q")
    (root / ".git" / "HEAD").write_text("nonsense\n")
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        told = f"The git repository in {root} cannot be read"
        notices = session.status.notices
        await Witness(session).until(lambda: any(told in notice.text for notice in notices))


async def test_accept_and_reject_while_the_rest_still_streams(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    lines = rewrite((2, "    A\n"), (10, "    B\n"), (30, "    C\n"))
    give(model, lines[:20])
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    first, second = await witness.decidable(2)
    assert session.status.state is SessionState.STREAMING
    assert await session.decisions.accept(first)
    assert await session.decisions.reject(second)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    A\n")))
    assert session.turns.last is not None
    assert session.turns.last.running
    give(model, lines[20:])
    model.end()
    await session.turns.finished()
    assert [h.state for h in session.hunks] == [
        HunkState.ACCEPTED,
        HunkState.REJECTED,
        HunkState.SETTLED,
    ]
    assert await session.decisions.accept(3)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    A\n"), (30, "    C\n")))


async def test_stop_freezes_at_once_and_keeps_what_is_unread(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    give(model, [*rewrite((2, "    A\n"))[:12], "    step_12 = wor"])
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await witness.decidable(1)
    stopping = asyncio.create_task(session.turns.stop_turn())
    await asyncio.sleep(0)
    frozen = list(session.files["run.py"].segments[0].settled)
    model.give("k(12)\n")
    model.give("    MUST NOT APPEAR\n")
    await stopping
    assert model.stopped == 1
    assert session.status.state is SessionState.READY
    assert session.turns.last is not None
    assert session.turns.last.status is TurnStatus.STOPPED
    assert session.files["run.py"].segments[0].settled == frozen
    assert [(h.old, h.new) for h in session.hunks] == [(("    step_02 = work(2)",), ("    A",))]
    assert await session.decisions.accept(1)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    A\n")))
    await session.turns.stop_turn()
    model.drop()


async def test_redirect_goes_on_behind_what_was_kept(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    lines = rewrite((2, "    A\n"), (30, "    C\n"))
    give(model, [*lines[:12], "    half a li"])
    first = await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await witness.decidable(1)
    segment = session.files["run.py"].segments[0]
    await witness.until(lambda: first.tokens == 13)
    rows = list(segment.settled)
    second = await session.turns.redirect("and make C loud")
    await witness.until(lambda: model.asked == "and make C loud")
    assert (first.status, second.status) == (TurnStatus.STOPPED, TurnStatus.STREAMING)
    assert second.redirected_from == first.id
    assert segment.settled[: len(rows)] == rows, "settled rows stay"
    give(model, lines[12:])
    model.end()
    await session.turns.finished()
    kept = "".join(lines[:12])
    assert [(m.role, m.text) for m in model.request.messages[1:-1]] == [("assistant", kept)]
    assert follow_ups(model.request) == ["and make C loud"]
    assert second.status is TurnStatus.DONE
    assert await session.decisions.accept_rest("run.py") == 2
    assert (root / "run.py").read_text() == "".join(lines)
    assert [e.turn.id for e in witness.events if isinstance(e, TurnFinished)] == [1, 2]


async def test_two_redirects_send_the_whole_conversation(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    lines = rewrite((2, "    A\n"))
    give(model, lines[:10])
    turn = await session.turns.instruct(Question("one", path="run.py", cursor=3))
    await witness.until(lambda: turn.tokens == 10)
    turn = await session.turns.redirect("two")
    await witness.until(lambda: model.asked == "two")
    give(model, lines[10:15])
    await witness.until(lambda: turn.tokens == 5)
    await session.turns.redirect("three")
    await witness.until(lambda: model.asked == "three")
    give(model, lines[15:])
    model.end()
    await session.turns.finished()
    roles = [m.role for m in model.request.messages]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    texts = [m.text for m in model.request.messages if m.role == "assistant"]
    assert texts == ["".join(lines[:10]), "".join(lines[10:15])]
    assert await session.decisions.accept_rest("run.py") == 1
    assert (root / "run.py").read_text() == "".join(lines)


async def test_redirect_before_the_first_line_keeps_nothing(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    turn = await session.turns.instruct(Question("one", path="run.py", cursor=3))
    assert session.status.state is SessionState.WAITING
    assert turn.running
    await session.turns.redirect("two")
    await witness.until(lambda: model.asked == "two")
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.finished()
    assert [m.role for m in model.request.messages] == ["user", "user"]
    assert len(session.hunks) == 1


async def test_queue_runs_when_the_turn_ends_and_waits_after_a_stop(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("one", path="run.py", cursor=3))
    session.turns.queue("two")
    session.turns.queue("three")
    assert session.turns.queued == ["two", "three"]
    give(model, rewrite((2, "    A\n")))
    model.end()
    await witness.seen(TurnStarted, 2)
    assert session.turns.last is not None
    assert (session.turns.last.instruction, session.turns.queued) == ("two", ["three"])
    await session.turns.stop_turn()
    assert session.turns.queued == ["three"]
    assert not session.turns.last.running
    session.turns.queue("four")
    await witness.seen(TurnStarted, 3)
    assert session.turns.last.instruction == "three"
    await witness.until(lambda: model.asked == "three")
    for _ in range(2):
        give(model, rewrite((2, "    B\n")))
        model.end()
    await witness.seen(TurnFinished, 4)
    await session.turns.finished()
    assert [t.instruction for t in session.turns] == ["one", "two", "three", "four"]
    assert session.turns.queued == []


async def test_queued_instruction_that_cannot_run_says_so(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    session.turns.queue("add a docstring to `nothing_here`")
    await witness.until(lambda: "nothing_here" in witness.notice)
    assert session.turns.queued == []


async def test_follow_up_builds_on_undecided_hunks(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("one", path="run.py", cursor=3))
    await session.turns.finished()
    lines = rewrite((2, "    A\n"), (5, "    B\n"))
    give(model, lines)
    model.end()
    await session.turns.instruct(Question("two", path="run.py", cursor=3))
    await session.turns.finished()
    assert model.region == "".join(rewrite((2, "    A\n")))
    assert session.hunks.get(1).state is HunkState.SUPERSEDED
    assert await session.decisions.accept_rest("run.py") == 2
    assert (root / "run.py").read_text() == "".join(lines)


async def test_a_file_opened_elsewhere_keeps_its_bytes(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    data = "\ufeff".encode() + BEFORE.replace("\n", "\r\n").removesuffix("\r\n").encode()
    (root / "dos.py").write_bytes(data)
    (root / "dos.py").chmod(0o755)
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change", path="dos.py", cursor=3))
    await session.turns.finished()
    await session.decisions.accept(1)
    wanted = data.replace(b"    step_02 = work(2)\r\n", b"    A\r\n")
    assert (root / "dos.py").read_bytes() == wanted
    assert (root / "dos.py").stat().st_mode & 0o777 == 0o755


async def test_an_answer_without_a_change_says_so(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    model.give(BEFORE)
    model.end()
    turn = await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    assert turn.status is TurnStatus.DONE
    assert witness.notice == (
        "stepped left `run` of run.py as it is: it found nothing to change, or did not understand "
        "the instruction. If something should change, say it in other words, or ask a larger model."
    )


INSISTED = [
    SteppedModel({"must_change": "1"}),
    SteppedModel({"must_change": "1", "prompt": "chat", "languages": ""}),
]


@pytest.mark.parametrize("model", INSISTED)
async def test_a_model_that_changes_nothing_is_asked_once_for_its_likeliest_change(
    session: PairingSession, model: SteppedModel
) -> None:
    fence = "" if model.facts["prompt"] != "chat" else "```\n"
    model.give(fence + BEFORE + fence)
    model.end()
    give(model, [fence, *rewrite((2, "    A\n")), fence])
    model.end()
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    assert [request.must_change for request in model.requests] == [False, True]
    assert model.requests[0].messages == model.requests[1].messages
    (hunk,) = session.hunks.undecided("run.py")
    assert session.turns.doubts(hunk)
    told = [notice.text for notice in session.status.notices]
    assert told[0] == (
        "stepped left `run` of run.py as it is. It is asked once more, for the change that it "
        "finds likeliest."
    )
    assert told[-1].startswith(
        "stepped first left `run` as it is; this is the change that it found likeliest when it was "
        "asked once more. Read it before"
    )


@pytest.mark.parametrize("model", [SteppedModel({"must_change": "1"})])
async def test_a_model_that_changes_nothing_twice_is_not_asked_again(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    for _ in range(2):
        model.give(BEFORE)
        model.end()
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    assert len(model.requests) == 2
    assert witness.notice.startswith("stepped left `run` of run.py as it is: it found nothing")
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change it", path="run.py", cursor=3))
    await session.turns.finished()
    assert not model.request.must_change


@pytest.mark.parametrize("model", [SteppedModel({"must_change": "1"})])
async def test_a_likeliest_change_is_flagged_while_it_is_written(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    model.give(BEFORE)
    model.end()
    give(model, rewrite((2, "    A\n"))[:8])
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    (number,) = await witness.decidable(1)
    assert session.turns.doubts(session.hunks.get(number))
    await session.turns.stop_turn()
    assert session.turns.doubts(session.hunks.get(number))


@pytest.mark.parametrize("model", [SteppedModel({"must_change": "1"})])
async def test_what_a_redirect_kept_is_not_asked_for_again(
    session: PairingSession, model: SteppedModel
) -> None:
    lines, witness = rewrite(), Witness(session)
    give(model, lines[:5])
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await witness.until(lambda: session.turns.writing == ("run.py", 5))
    await session.turns.redirect("no, something else")
    await witness.until(lambda: model.stopped and len(model.requests) == 2)
    give(model, lines[5:])
    model.end()
    await session.turns.finished()
    assert [request.must_change for request in model.requests] == [False, False]
    assert not session.hunks.undecided("run.py")


async def test_lines_without_a_name_are_told_in_the_plural(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    lines = (session.root / "run.py").read_text().splitlines(keepends=True)
    model.give("".join(lines[3:5]))
    model.end()
    await session.turns.instruct(Question("change", path="run.py", selection=(3, 5)))
    await session.turns.finished()
    assert witness.notice.startswith("stepped left lines 4-5 of run.py as they are: it")


async def test_a_rename_that_leaves_the_name_is_told(
    session: PairingSession, model: SteppedModel
) -> None:
    give(model, rewrite())
    model.end()
    await session.turns.instruct(Question("rename work to toil in run", path="run.py", cursor=3))
    await session.turns.finished()
    assert session.status.notices[-1].text.startswith(
        "stepped did not change `run` of run.py, and `work` is still there: "
        "change it by hand, say it in other words"
    )


async def test_a_name_that_is_not_there_is_told(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    model.give(BEFORE)
    model.end()
    await session.turns.instruct(Question("remove `appname`", path="run.py", cursor=3))
    await session.turns.finished()
    assert witness.notice == "Nothing to change: appname does not occur in `run` of run.py."


async def test_an_empty_answer_deletes_nothing(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    model.end()
    turn = await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    assert turn.status is TurnStatus.FAILED
    assert "returned no code" in turn.error
    assert len(session.hunks) == 0
    assert await session.decisions.accept_rest("run.py") == 0
    assert (root / "run.py").read_text() == BEFORE


@pytest.mark.parametrize("model", [SteppedModel({"prompt": "chat"})])
async def test_a_refusal_is_shown_and_deletes_nothing(
    session: PairingSession, model: SteppedModel
) -> None:
    model.give("I am sorry, but I cannot help with that request today.\n")
    model.end()
    turn = await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    assert turn.status is TurnStatus.FAILED
    assert 'but said: "I am sorry' in turn.error
    assert len(session.hunks) == 0
    assert "the complete edited code" in model.request.messages[-1].text


@pytest.mark.parametrize("model", [SteppedModel({"prompt": "chat"})])
@pytest.mark.parametrize("said", ["change it", "add a function header(title) to run.py"])
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize(
    ("reply", "word"),
    [("```python\n```\n", "no code"), ("```python\n\n\n```\n", "no code"), ("Done.\n", '"Done."')],
)
async def test_an_answer_without_code_deletes_nothing(
    session: PairingSession,
    model: SteppedModel,
    root: Path,
    said: str,
    reply: str,
    word: str,
    *,
    stopped: bool,
) -> None:
    model.give(reply)
    turn = await session.turns.instruct(Question(said, path="run.py", cursor=3))
    if stopped:
        await session.turns.stop_turn()
    else:
        model.end()
        await session.turns.finished()
        assert turn.status is TurnStatus.FAILED
        assert word in turn.error
    assert (len(turn.hunks), len(session.hunks.undecided("run.py"))) == (0, 0)
    assert await session.decisions.accept_rest("run.py") == 0
    assert (root / "run.py").read_text() == BEFORE


@pytest.mark.parametrize("model", [SteppedModel({"prompt": "chat"})])
@pytest.mark.parametrize(
    ("said", "rest", "goes"),
    [
        ("remove the function NAME", "LAST = 1\n", True),
        ("Delete `NAME` from run.py, please.", "LAST = 1\n", True),
        ("remove the loop from NAME", "LAST = 1\n", False),
        ("remove the function NAME", "", False),
    ],
)
async def test_an_empty_block_is_an_answer_where_the_definition_is_to_go(
    session: PairingSession, model: SteppedModel, root: Path, said: str, rest: str, *, goes: bool
) -> None:
    (root / "run.py").write_text(BEFORE + rest)
    model.give("```python\n```\n")
    model.end()
    turn = await session.turns.instruct(Question(said.replace("NAME", "run"), path="run.py"))
    await session.turns.finished()
    assert turn.status is (TurnStatus.DONE if goes else TurnStatus.FAILED), turn.error
    assert await session.decisions.accept_rest("run.py") == goes
    assert (root / "run.py").read_text() == (rest if goes else BEFORE + rest)


@pytest.mark.parametrize("model", [SteppedModel({"prompt": "chat"})])
async def test_an_answer_with_nothing_new_says_so_and_deletes_nothing(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    model.give("```python\nreturn title.upper()\n```\n")
    model.end()
    said = "add a function header(title) to run.py"
    turn = await session.turns.instruct(Question(said, path="run.py", cursor=3))
    await session.turns.finished()
    assert turn.status is TurnStatus.FAILED
    assert turn.error == (
        "The model returned no code for lines 1-40 of run.py (the reply has nothing that the file "
        "lacks); nothing was changed."
    )
    assert await session.decisions.accept_rest("run.py") == 0
    assert (root / "run.py").read_text() == BEFORE


@pytest.mark.parametrize("model", [SteppedModel({"prompt": "chat"})])
async def test_a_question_in_a_comment_is_answered_and_nothing_changed(
    session: PairingSession, root: Path, model: SteppedModel
) -> None:
    await session.files.open("run.py")
    asked = BEFORE + "# why is this here AI?\n"
    (root / "run.py").write_text(asked)
    model.give("Because the caller wants it.\n")
    model.end()
    witness = Witness(session)
    await session.background.changed(["run.py"])
    await witness.until(lambda: len(session.chat.entries) == 2 and not session.chat.busy)
    assert exchanges(session.chat.entries) == [
        AnsweredQuestion("why is this here", "Because the caller wants it.\n")
    ]
    assert not session.turns
    assert len(session.hunks) == 0
    assert (root / "run.py").read_text() == asked


@pytest.mark.parametrize("prompt", ["chat", "edit-rewrite"])
async def test_a_chat_model_is_told_once_what_was_rejected_and_why(root: Path, prompt: str) -> None:
    model = SteppedModel({"prompt": prompt})
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session,
    ):
        give(model, rewrite((2, "    A\n")))
        model.end()
        await session.turns.instruct(Question("change", path="run.py", cursor=3))
        await session.turns.finished()
        await session.decisions.reject(1, "A says\nnothing")
        told = [
            "change again",
            "",
            "Changes to this file that were turned down; do not make them again:",
            "* turned down because: A says nothing",
            f"    - {BEFORE.splitlines()[2]}",
            "    +     A",
        ]
        give(model, rewrite((5, "    B\n"))[:9])
        witness = Witness(session)
        turn = await session.turns.instruct(Question("change again", path="run.py", cursor=3))
        await witness.until(lambda: model.asked.startswith("change again"))
        assert model.asked == ("\n".join(told) if prompt == "chat" else "change again")
        assert turn.instruction == "change again"
        await witness.until(lambda: bool(session.hunks.undecided()))
        await session.decisions.reject(session.hunks.undecided()[0].id)
        await session.turns.redirect("otherwise")
        await witness.until(lambda: model.asked.startswith("otherwise"))
        assert ("+     B" in model.asked) is (prompt == "chat")
        assert "A says" not in model.asked
        await session.turns.stop_turn()


async def test_what_was_rejected_elsewhere_in_the_file_is_not_told(root: Path) -> None:
    (root / "run.py").write_text("def a():\n    return 1\n\n\ndef b():\n    return 2\n")
    model = SteppedModel({"prompt": "chat"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session,
    ):
        for number, cursor in enumerate((0, 4, 0)):
            model.give(f"```python\ndef {'aba'[number]}():\n    return {number + 3}\n```\n")
            model.end()
            await session.turns.instruct(Question("change", path="run.py", cursor=cursor))
            await session.turns.finished()
            await session.decisions.reject(session.hunks.undecided()[0].id)
            told = model.requests[-1].messages[-1].text
            assert ("return 3" in told, "return 4" in told) == (number == 2, False)


async def test_decisions_that_cannot_be_made_are_explained(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    assert not await session.decisions.accept(77)
    assert witness.notice == "There is no hunk 77 in this session."
    give(model, rewrite((2, "    A\n"))[:3])
    turn = await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await witness.until(lambda: turn.tokens == 3)
    await session.turns.stop_turn()
    assert (root / "run.py").read_text() == BEFORE


async def test_a_read_only_file_keeps_the_hunk_undecided(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    (root / "run.py").chmod(0o444)
    assert not await session.decisions.accept(1)
    assert witness.notice == "run.py is read-only; make it writable (chmod u+w) and try again."
    assert session.hunks.get(1).state is HunkState.SETTLED
    assert (root / "run.py").read_text() == BEFORE
    (root / "run.py").chmod(0o644)
    assert await session.decisions.accept(1)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    A\n")))


async def test_a_character_the_file_cannot_hold(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    data = b"# -*- coding: latin-1 -*-\ndef f():\n    return '\xe9'\n"
    (root / "old.py").write_bytes(data)
    model.give("def f():\n    return '\u20ac'\n")
    model.end()
    await session.turns.instruct(Question("change", path="old.py", cursor=1))
    await session.turns.finished()
    assert not await session.decisions.accept(1)
    assert "cannot be written in iso8859-1" in witness.notice
    assert (root / "old.py").read_bytes() == data


async def test_no_server_is_said_and_costs_nothing(
    root: Path, settings: Settings, unused_tcp_port: int
) -> None:
    nowhere = Endpoint(f"ws://127.0.0.1:{unused_tcp_port}/v1", None, "m", "custom")
    async with await PairingSession.open(
        root, settings=settings, endpoint=nowhere, watch=False
    ) as session:
        witness = Witness(session)
        await witness.until(lambda: session.status.state is SessionState.OFFLINE)
        with pytest.raises(UnavailableError):
            await session.turns.instruct(Question("change", path="run.py", cursor=3))
        assert session.status.state is SessionState.OFFLINE
        assert not session.turns
        assert len((await session.files.open("run.py")).base.lines) == 40


async def test_another_model_is_reached_at_once_where_none_was(
    root: Path, settings: Settings, unused_tcp_port: int
) -> None:
    nowhere = Endpoint(f"ws://127.0.0.1:{unused_tcp_port}/v1", None, "m", "custom")
    async with (
        served(SteppedModel()) as there,
        await PairingSession.open(
            root, settings=settings, endpoint=nowhere, watch=False
        ) as session,
    ):
        witness = Witness(session)
        await witness.until(lambda: session.status.state is SessionState.OFFLINE)
        profile = Profile("there", "custom", there.url, "stepped", "KEY_THERE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KEY_THERE", there.token or "none")
            session.use_model(replace(settings, endpoints=(profile,), endpoint="there"))
            assert session.status.state is SessionState.STARTING
            await witness.until(lambda: session.status.state is SessionState.READY)


async def test_a_missing_model_folder_is_named(root: Path, tmp_path: Path) -> None:
    settings = Settings(model=tmp_path / "no-model")
    async with await PairingSession.open(root, settings=settings, watch=False) as session:
        with pytest.raises(UnavailableError, match=r"no model folder at .*/no-model"):
            await session.turns.instruct(Question("change", path="run.py", cursor=3))


async def test_settings_that_are_changed_hold_in_the_session_that_runs(
    session: PairingSession,
) -> None:
    settings = replace(
        session._settings,
        check_command="true",
        check_after_accepts=True,
        continuous=True,
        ai_comments=False,
        feedback="off",
        hold_s=5.0,
    )
    session.apply_settings(settings)
    command = await session.check.suggested()
    assert command is not None
    assert (command.text, command.own) == ("true", True)
    assert session.check.after_accepts
    assert not session.background.comments
    assert (session.feedback.mode, session.gate.wait_s) == ("off", 5.0)
    witness = Witness(session)
    await witness.until(lambda: session.background.continuous)
    await session.background.set_continuous(on=False)
    session.apply_settings(replace(settings, effort="high"))
    assert not session.background.continuous, "what a key has switched stays"
    assert session.turns.effort == "high"
