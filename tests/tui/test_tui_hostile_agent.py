"""An agent that tries to escape from its folder, and from its text on the screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from midstream.agents.catalogue import KnownAgent
from midstream.settings import Settings
from tests.helpers.scripted_agent import BEGIN, command
from tests.helpers.stage import Stage, on_stage

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\u202eabc\u2066"
"""A title, a cleared screen, colours, overwriting and reordering."""
END = {"result": {"stopReason": "end_turn"}}
OPTIONS = [
    {"optionId": "ever", "name": f"Always{EVIL}", "kind": "allow_always"},
    {"optionId": "yes", "name": f"Allow{EVIL}", "kind": "allow_once"},
    {"optionId": "no", "name": f"Reject{EVIL}", "kind": "reject_once"},
]


def update(said: str, **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": said, **fields}}


def said(kind: str, text: str) -> dict[str, Any]:
    return update(kind, content={"type": "text", "text": text})


def ask(path: str, old: str | None, new: str) -> dict[str, Any]:
    diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
    call = {"toolCallId": path, "title": f"Edit{EVIL}", "kind": f"edit{EVIL}", "content": [diff]}
    return {"ask": {"toolCall": call, "options": OPTIONS}}


def painted(stage: Stage) -> str:
    """Everything that is on the screen, as it would be written to the terminal."""
    screen = stage.app.screen
    size = screen.size
    lines = screen._compositor.render_strips(size)
    return "\n".join(segment.text for strip in lines for segment in strip if not segment.control)


def assert_inert(text: str) -> None:
    raw = [c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f"]
    assert not raw, [text[max(0, i - 40) : i + 10] for i, c in enumerate(text) if c in raw]
    assert not set("\u202e\u2066") & set(text)


async def begin(stage: Stage, folder: Path, steps: list[dict[str, Any]]) -> None:
    (initialized,) = BEGIN["initialize"]
    info = {"name": f"n{EVIL}", "title": f"Scripted{EVIL}", "version": f"1{EVIL}"}
    modes = {
        "currentModeId": "a",
        "availableModes": [{"id": "a", "name": f"Mode{EVIL}"}, {"id": "b", "name": f"B{EVIL}"}],
    }
    script = {
        "initialize": [{"result": {**initialized["result"], "agentInfo": info}}],
        "session/new": [{"result": {"sessionId": "s-1", "modes": modes}}],
        "session/prompt": steps,
    }
    agent = KnownAgent("", f"Agent{EVIL}", tuple(command(folder, script)))
    await stage.session.agent.begin(agent)
    await stage.until(lambda: stage.screen.panes.conversation is not None, "a conversation")


async def test_whatever_it_says_is_shown_inert(project: Path, tmp_path: Path) -> None:
    (project / "pkg" / "bill.py").write_text("x = 1\n")
    name = "evil\x1b[31m\x07.py"
    steps = [
        said("agent_thought_chunk", f"thought{EVIL}"),
        said("agent_message_chunk", f"message{EVIL}\n\n```sh\ncode{EVIL}\n```\n"),
        update("plan", entries=[{"content": f"step{EVIL}", "status": "pending"}]),
        update("tool_call", toolCallId="r", title=f"Read{EVIL}", kind="read", status="failed"),
        ask(f"pkg/bill{EVIL}.py", f"x{EVIL} = 1\n", f"x{EVIL} = 2\n"),
        {"write": {str(project / name): f"y = '{EVIL}'\n"}},
        {"write": {str(project / "pkg" / "bill.py"): f"x = 1  # {EVIL}\n"}},
        {"until": "session/cancel"},
        {"log": f"died{EVIL}\n"},
        {"exit": 3},
    ]
    async with on_stage(project, size=(140, 50)) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await begin(stage, tmp_path, steps)
        stage.session.agent.send("go")
        await stage.until(lambda: stage.session.agent.asking, "a question")
        await stage.until(lambda: "Edit" in painted(stage), "its title")
        await stage.until(lambda: stage.choices, "the answers")
        text = painted(stage)
        assert_inert(text)
        for word in ("message", "step", "bill"):
            assert word in text, word
        await stage.press("m")
        await stage.pilot.pause()
        assert_inert(painted(stage))
        await stage.press("escape")
        conversation = stage.session.agent.conversation
        assert conversation is not None
        assert conversation.allow()
        store = stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 2, "two files")
        assert_inert(painted(stage))
        for path in (name, "pkg/bill.py"):
            await stage.open(path)
            assert_inert(painted(stage))
        stage.session.agent.stop_working()
        await stage.until(lambda: not stage.session.agent.busy, "its death")
        await stage.until(lambda: "ended (exit code 3)" in stage.notice, "which is told")
        assert_inert(painted(stage))
        titles = [str(widget.content) for widget in stage.screen.query(Static)]
        assert titles
        for hunk in store.undecided():
            await stage.session.decisions.reject(hunk.id)
        await stage.session.decisions.put_backs.apply()
        assert not os.path.exists(project / name)  # noqa: ASYNC240, PTH110


async def test_the_answers_about_a_new_file_stay(project: Path, tmp_path: Path) -> None:
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [ask("pkg/new.py", None, "x = 1\n"), END])
        stage.session.agent.send("go")
        await stage.until(lambda: stage.choices, "the answers")
        await stage.until(lambda: "x = 1" in painted(stage), "the edit")
        assert len(stage.choices) == 3, stage.notice
        await stage.press("1")
        await stage.until(lambda: not stage.session.agent.busy, "the end")


@pytest.mark.parametrize("path", ["/etc/hostname", "../outside.py", "link/outside.py"])
async def test_a_question_about_a_file_outside_shows_it_and_opens_nothing(
    project: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "outside.py").write_text("secret = 1\n")
    (project / "link").symlink_to(tmp_path)
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [ask(path, "secret = 1\n", "secret = 2\n"), END])
        stage.session.agent.send("go")
        await stage.until(lambda: stage.session.agent.asking, "a question")
        await stage.until(lambda: "secret = 2" in painted(stage), "the edit")
        assert path in painted(stage), "where it would go is said"
        files = list(stage.session.files)
        assert not any("outside" in each or "hostname" in each for each in files)
        conversation = stage.session.agent.conversation
        assert conversation is not None
        assert conversation.reject()
        await stage.until(lambda: not stage.session.agent.busy, "the end")


async def test_what_is_replaced_by_a_link_that_leads_out_is_not_followed(
    project: Path, tmp_path: Path
) -> None:
    """The linked file is neither read into the review nor written by a put-back."""
    outside = tmp_path / "outside.py"
    outside.write_text("secret = 1\n")
    bill = project / "pkg" / "bill.py"
    bill.write_text("x = 1\n")
    async with on_stage(project, settings=Settings(journal=True)) as stage:
        session = stage.session
        await session.review.switch_on(since_commit=False)
        bill.write_text("x = 2\n")
        await session.review.changed({"pkg/bill.py"})
        (hunk,) = session.hunks.undecided()
        bill.unlink()
        bill.symlink_to(outside)
        await session.review.changed({"pkg/bill.py"})
        session.decisions.put_backs.to_postpone = lambda _: []  # type: ignore[method-assign]
        await session.decisions.reject(hunk.id)
        await session.decisions.put_backs.apply()
        assert outside.read_text() == "secret = 1\n"
        for each in session.hunks:
            assert "secret = 1" not in (*each.old, *each.new)
        session.journal.flush()
        assert session.journal.path is not None
        assert "secret" not in session.journal.path.read_text()
        bill.unlink()
        bill.write_text("x = 3\n")
        await session.review.changed({"pkg/bill.py"})
        assert [h.new for h in session.hunks.undecided()] == [("x = 3",)]
