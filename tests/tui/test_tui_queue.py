"""What is queued, what a person is asked before something is sent, and text that comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.edits.proposal import FileProposal
from midstream.pairing.turn import checks, finished
from midstream.tui import notices
from tests.helpers.stage import CODE, Stage, on_stage

COUNT = CODE[CODE.index("def count") : CODE.index("\n\n\ndef double") + 1]
NEW_COUNT = COUNT.replace("total", "found").splitlines(keepends=True)


async def start(stage: Stage) -> None:
    """Open the file and let the model begin to rename in ``count``."""
    await stage.open("pkg/things.py")
    await stage.instruct("rename total in count")


async def test_alt_enter_queues_and_the_text_runs_afterwards(stage: Stage) -> None:
    await start(stage)
    await stage.stream("".join(NEW_COUNT[:2]))
    await stage.press("i")
    await stage.type("rename number in double")
    await stage.press("alt+enter")
    assert stage.session.turns.queued == ["rename number in double"]
    assert "Queued" in stage.notice
    assert stage.composer.text == ""
    await stage.stream("".join(NEW_COUNT[2:]))
    stage.model.give(None)
    await stage.until(lambda: len(stage.model.requests) == 2, "queued request")
    assert "def double" in stage.model.region


async def test_a_stop_says_what_is_still_queued(stage: Stage) -> None:
    await start(stage)
    await stage.press("i")
    await stage.type("then this")
    await stage.press("alt+enter", "ctrl+c")
    await stage.until(lambda: "Stopped after" in stage.notice, "stopped")
    assert stage.notice.endswith("; 1 instruction queued, i and then enter takes it back.")
    assert stage.composer.text == ""
    requests = len(stage.model.requests)
    await stage.press("i", "enter")
    assert stage.composer.text == "then this", stage.notice
    assert not stage.session.turns.queued
    assert len(stage.model.requests) == requests, "it is shown before it is sent"


async def test_a_redirect_in_the_moment_of_the_end_is_sent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look_on = asyncio.Event(), asyncio.Event()
    check = checks.newly_broken

    async def slowly(proposal: FileProposal) -> str:
        looked.set()
        await look_on.wait()
        return await check(proposal)

    monkeypatch.setattr(finished, "newly_broken", slowly)
    await start(stage)
    await stage.press("i")
    await stage.type("also add a docstring")
    await stage.stream("".join(NEW_COUNT))
    stage.model.end()
    await stage.until(looked.is_set, "the answer has ended and is looked at")
    assert stage.screen.state.running
    await stage.press("enter")
    await stage.until(lambda: len(stage.model.requests) == 2, "the next request")
    assert stage.model.asked == "also add a docstring"
    assert stage.model.region == COUNT.replace("total", "found")
    assert stage.composer.text == ""
    look_on.set()
    stage.model.end()
    await stage.until(lambda: not stage.session.turns.busy, "end")


async def test_what_is_sent_before_the_first_has_begun_redirects_it(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    async with stage.session.files.lock:  # The first cannot be prepared before this is free.
        await stage.type("rename total in count")
        await stage.press("enter", "i")
        await stage.type("also add a docstring")
        await stage.press("enter")
        assert not stage.model.requests
    await stage.until(lambda: stage.model.asked == "also add a docstring", "the redirect")
    assert stage.composer.text == ""
    assert [turn.instruction for turn in stage.session.turns] == [
        "rename total in count",
        "also add a docstring",
    ]
    stage.model.end()
    await stage.until(lambda: not stage.session.turns.busy, "end")


async def test_a_stop_is_for_all_that_is_on_its_way(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    async with stage.session.files.lock:
        await stage.type("rename total in count")
        await stage.press("enter", "i")
        await stage.type("also add a docstring")
        await stage.press("enter", "ctrl+c")
    await stage.until(lambda: stage.composer.text != "", "what was not sent is put back")
    await stage.until(lambda: not stage.session.turns.busy, "end")
    assert "also add a docstring" in stage.composer.text
    assert all(turn.status == "stopped" for turn in stage.session.turns)


async def test_a_text_that_cannot_be_sent_comes_back(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("rename x in nowhere_at_all")
    await stage.press("enter")
    await stage.until(lambda: bool(stage.notice), "sentence")
    assert "nowhere_at_all" in stage.notice
    assert stage.composer.text == "rename x in nowhere_at_all"


async def test_a_question_is_answered_with_a_number(project: Path) -> None:
    (project / "pkg" / "two.py").write_text(
        "class A:\n    def run(self):\n        return 1\n\n\n"
        "class B:\n    def run(self):\n        return 2\n"
    )
    async with on_stage(project) as stage:
        await stage.type("rename self in run")
        await stage.press("enter")
        await stage.until(lambda: bool(stage.choices), "question")
        assert stage.notice.endswith("hich one do you mean?"), "the names stand below, numbered"
        assert stage.screen.panes.notice.choices == ("pkg/two.py: A.run", "pkg/two.py: B.run")
        assert stage.composer.text == "rename self in run"
        await stage.press("2")
        await stage.until(lambda: bool(stage.model.requests), "request")
        assert "return 2" in stage.model.region
        assert stage.composer.text == ""


async def test_a_question_can_be_answered_after_going_back_to_the_text(stage: Stage) -> None:
    (stage.app.root / "pkg" / "more.py").write_text("def walk():\n    return 1\n")
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("add a docstring to `walk`")
    await stage.press("enter")
    await stage.until(lambda: "go there?" in stage.notice, "question")
    assert stage.keys[:2] == ["1 choose", "esc leave it"]
    await stage.press("i", "1")
    assert stage.composer.text == "add a docstring to `walk`1", "in a text it is a character"
    assert "esc answer by number" in stage.keys
    await stage.press("backspace", "escape")
    assert "go there?" in stage.notice
    await stage.press("1")
    await stage.until(lambda: stage.model.requests, "the answer counts")
    assert stage.path == "pkg/more.py"


@pytest.mark.system
async def test_a_name_of_another_file_is_told_while_it_is_typed(stage: Stage) -> None:
    (stage.app.root / "pkg" / "more.py").write_text("def walk():\n    return 1\n")
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("add a docstring to `walk`")
    await stage.until(lambda: "in pkg/more.py; go there?" in stage.title, "the place")
    await stage.type(" in more.py")
    await stage.until(lambda: "pkg/more.py  walk" in stage.title, "the file that is named")
    assert not stage.model.requests


async def test_a_question_is_answered_from_the_empty_composer(stage: Stage) -> None:
    (stage.app.root / "pkg" / "more.py").write_text("def walk():\n    return 1\n")
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("add a docstring to `walk`")
    await stage.press("enter")
    await stage.until(lambda: "go there?" in stage.notice, "question")
    stage.composer.take()
    await stage.press("i", "1")
    await stage.until(lambda: stage.model.requests, "the answer counts")
    assert stage.path == "pkg/more.py"


async def test_a_question_outlives_the_facts_that_cover_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "COVER_S", 2.0)
    (stage.app.root / "pkg" / "more.py").write_text("def walk():\n    return 1\n")
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("add a docstring to `walk`")
    await stage.press("enter")
    await stage.until(
        lambda: "not defined in pkg/things.py but in pkg/more.py" in stage.notice, "question"
    )
    await stage.press("a")
    assert stage.notice == "No undecided hunks."
    await stage.until(lambda: "go there?" in stage.notice, "the question again")
    await stage.press("a", "1")
    await stage.until(lambda: stage.model.requests, "the answer counts")
    assert stage.path == "pkg/more.py"
    await stage.pilot.pause(notices.COVER_S + 0.2)
    assert "go there?" not in stage.notice
