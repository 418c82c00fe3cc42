"""What a session keeps of what it has sent is what the server got."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from midstream.pairing.request.question import Question
from midstream.pairing.request.sent import KEPT, SentKind, SentLog
from midstream.pairing.session import PairingSession
from midstream.responses.conversation import RequestContent
from tests.helpers.hosted import Hosted
from tests.helpers.stepped import SteppedModel


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 (several things are waited for)
            await asyncio.sleep(0.005)


async def test_an_instruction_and_its_redirect(
    session: PairingSession, model: SteppedModel
) -> None:
    await session.turns.instruct(Question("use another loop", path="run.py", cursor=3))
    await until(lambda: model.requests)
    model.give(model.region[:20])
    [first] = session.sent
    assert (first.kind, first.said) == (SentKind.INSTRUCTION, "use another loop")
    assert [entry[1] for entry in first.content.messages if isinstance(entry, tuple)] == [
        message.text for message in model.request.messages
    ]
    assert any(part.inside and part.name.startswith("run.py lines ") for part in first.parts)
    await session.turns.redirect_or_instruct(Question("call it amount", path="run.py", cursor=3))
    await until(lambda: len(model.requests) == 2)
    second, same = session.sent
    assert same is first
    assert (second.kind, second.said) == (SentKind.REDIRECT, "call it amount")
    assert [entry[1] for entry in second.content.messages if isinstance(entry, tuple)] == [
        message.text for message in model.request.messages
    ]
    model.end()


async def test_what_is_rehearsed_is_what_is_sent(hosted: Hosted, url: str, root: Path) -> None:
    (root / "AGENTS.md").write_text("Use tabs.\n")
    settings = hosted.settings(url, "search-replace")
    async with await PairingSession.open(root, settings=settings, watch=False) as session:
        question = Question("sort it", path="run.py", cursor=3)
        draft = await session.turns.rehearse(question)
        assert draft.at is None
        assert not session.sent
        await session.turns.instruct(question)
        await until(lambda: hosted.creates)
        [sent] = session.sent
        assert sent.content.messages == draft.content.messages
        assert sent.content.instructions.startswith(draft.content.instructions)
        assert sent.recipient == draft.recipient == "model-x at hosted"
        assert hosted.messages == [*sent.content.messages]
        asked = await session.chat.rehearse(Question("why", path="run.py", cursor=3))
        await session.chat.ask_question(Question("why", path="run.py", cursor=3))
        await until(lambda: len(session.sent) == 2)
        latest = next(iter(session.sent))
        assert latest.kind is SentKind.QUESTION
        assert latest.content.messages == asked.content.messages
        hosted.end()
        hosted.end()


def test_only_the_latest_requests_are_kept_and_one_about_each_subject() -> None:
    log, one = SentLog(), object()
    for number in range(KEPT + 3):
        log.note(SentKind.QUESTION, str(number), "x", RequestContent())
    assert [sent.said for sent in log] == [str(n) for n in range(KEPT + 2, 2, -1)]
    log.note(SentKind.QUESTION, "first", "x", RequestContent(), about=one)
    log.note(SentKind.QUESTION, "then", "x", RequestContent(), about=one)
    assert [sent.said for sent in log][:2] == ["then", str(KEPT + 2)]
