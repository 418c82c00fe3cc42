"""The composer shows the target of an instruction; for a request that no model does, the key."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.pairing.request.builder import RequestBuilder
from midstream.pairing.request.context import Context
from midstream.pairing.request.question import Question
from midstream.pairing.request.scope import Scope
from midstream.tui.app import MidstreamApp
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo
from tests.helpers.stage import on_stage, ready


async def test_a_definition_of_another_file_is_the_target_before_enter(project: Path) -> None:
    (project / "pkg" / "far.py").write_text("x = 1\n\n\ndef away(total):\n    return total\n")
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        await stage.press("i")
        stage.composer.put("rename total to amount in @pkg/far.py:away")
        await stage.until(lambda: "pkg/far.py" in stage.title, "the target")
        assert "away, lines 4-5" in stage.title
        assert "named with @" in stage.title
        await stage.press("enter")
        await stage.until(lambda: stage.model.requests, "request")
        assert stage.model.region == "def away(total):\n    return total\n"


async def test_what_was_sent_is_waited_for_from_the_key_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered = asyncio.Event()
    gather = RequestBuilder.context

    async def context(
        self: RequestBuilder, scope: Scope, question: Question, **more: bool
    ) -> Context:
        await gathered.wait()
        return await gather(self, scope, question, **more)

    async with on_stage(project) as stage:
        row = stage.screen.query_one(StatusRow)
        await stage.open("pkg/things.py")
        await stage.press("i")
        stage.composer.put("shorten both count and double")
        await stage.press("enter")
        await stage.until(lambda: stage.choices, "which of the two")
        assert "ready" in row.render().plain
        monkeypatch.setattr(RequestBuilder, "context", context)
        await stage.press("1")
        assert "sending" in row.render().plain
        await stage.until(lambda: not stage.composer.text, "the text has gone")
        assert "sending" in row.render().plain
        gathered.set()
        await stage.until(lambda: stage.model.requests, "request")
        await stage.until(lambda: "reading" in row.render().plain, "the model has it")


@pytest.mark.parametrize(
    ("said", "key"),
    [("undo your last change", "u undoes"), ("/help", "F1 shows"), ("what is this?", "M chooses")],
)
async def test_what_is_no_edit_is_answered_with_a_key(project: Path, said: str, key: str) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        await stage.press("i")
        stage.composer.put(said)
        await stage.press("enter")
        await stage.until(lambda: key.lower() in stage.notice.lower(), "the sentence")
        assert not stage.model.requests


@pytest.mark.parametrize("draft", ["", "and now"])
async def test_tests_that_were_left_out_stand_in_the_empty_field(
    tmp_path: Path, draft: str
) -> None:
    steps = "".join(f"    def step_{n}(self):\n        return {n}\n\n" for n in range(15))
    root = make_repo(tmp_path / "work", {"steps.py": f"class Steps:\n{steps}"})
    hosted = Hosted()
    async with hosted.running() as url:
        app = MidstreamApp(root, replace(hosted.settings(url, "region"), journal=False))
        async with ready(app) as stage:
            await stage.open("steps.py")
            await stage.press("i")
            stage.composer.put("add a method total to Steps and a test for it")
            await stage.press("enter")
            stage.composer.put(draft)
            unasked = "\n\ndef count(self):\n    return 2\n"
            hosted.say(f"```python\ndef total(self):\n    return 1\n{unasked}```\n")
            hosted.end()
            await stage.until(lambda: "Not asked for yet: a test for it" in stage.notice, "the end")
            await stage.until(lambda: stage.session.status.state == "ready", "ready")
            await stage.pilot.pause()
            assert stage.composer.text == (draft or "write a test for Steps.total")


async def test_the_next_of_several_functions_stands_in_the_empty_field(tmp_path: Path) -> None:
    load, save = ("def load(path):\n    return path\n", "def save(path):\n    return path\n")
    root = make_repo(tmp_path / "work", {"store.py": f"{load}\n\n{save}"})
    hosted = Hosted()
    async with hosted.running() as url:
        app = MidstreamApp(root, replace(hosted.settings(url, "region"), journal=False))
        async with ready(app) as stage:
            await stage.open("store.py")
            await stage.press("i")
            stage.composer.put("make load and save return None")
            title = stage.composer.title
            await stage.until(
                lambda: "load, lines 1-2, then save" in title.render().plain, "the title"
            )
            await stage.press("enter")
            hosted.say("```python\ndef load(path):\n    return None\n```\n")
            hosted.end()
            await stage.until(lambda: "Not asked for yet: save" in stage.notice, "the end")
            await stage.until(lambda: stage.session.status.state == "ready", "ready")
            await stage.pilot.pause()
            assert stage.composer.text == "make save return None"
            assert stage.session.turns[-1].instruction == "make load and save return None"
            assert "make load return None" in str(hosted.creates)
            assert "make load and save" not in str(hosted.creates)
