"""A coding agent on the screen: what is said, asked, answered, stopped and decided."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from textual.widgets import Markdown, Static

from midstream.agents.catalogue import KnownAgent
from midstream.pairing.chat.entries import Speech
from midstream.pairing.review.agent_conversation import MAX_BLOCK
from midstream.tui.conversation import pane
from midstream.tui.conversation.tools import ToolLines
from midstream.tui.pages.models import ModelsScreen
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.scripted_agent import BEGIN, command, sent
from tests.helpers.stage import Stage, on_stage
from tests.helpers.stage import conversation_text as shown

OLD = "def tax(amount):\n    return amount * 0.2\n"
NEW = "def tax(amount, rate=0.2):\n    return amount * rate\n"
CALL = {"toolCallId": "t1"}
END = {"result": {"stopReason": "end_turn"}}
OPTIONS = [
    {"optionId": "ever", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def said(kind: str, text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": kind, "content": content}}


def ask(path: Path) -> dict[str, Any]:
    diff = {"type": "diff", "path": str(path), "oldText": OLD, "newText": NEW}
    call = {**CALL, "title": "Edit bill.py", "kind": "edit", "content": [diff]}
    return {"ask": {"toolCall": call, "options": OPTIONS}}


async def begin(
    stage: Stage,
    folder: Path,
    steps: list[dict[str, Any]],
    *,
    ends_turn: bool = False,
    **script: Any,
) -> None:
    whole = {**BEGIN, "session/prompt": steps, **script}
    agent = KnownAgent("", "Agent", tuple(command(folder, whole)), ends_turn=ends_turn)
    await stage.session.agent.begin(agent)
    await stage.until(lambda: stage.screen.panes.conversation is not None, "a conversation")


def scrolled_up(stage: Stage) -> bool:
    """Look for what was said before."""
    view = stage.screen.panes.conversation
    assert view is not None
    view.scroll(-1000)
    return True


def status(stage: Stage) -> str:
    return stage.screen.query_one(StatusRow).render().plain


async def type_text(stage: Stage, text: str) -> None:
    await stage.press("i")
    stage.screen.panes.composer.put(text)
    await stage.press("enter")


async def test_an_edit_is_asked_about_allowed_and_put_back(project: Path, tmp_path: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(OLD)
    steps = [
        said("agent_thought_chunk", "Let me see."),
        said("agent_message_chunk", "I add a **rate**"),
        said("agent_message_chunk", " now.\x1b[31m"),
        ask(bill),
        {"write": {str(bill): NEW}},
        {
            "update": {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "t1",
                "status": "completed",
            }
        },
        END,
    ]
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await begin(stage, tmp_path, steps)
        await stage.until(lambda: "Scripted" in status(stage), "its name")
        await type_text(stage, "give tax a rate")
        assert stage.composer.field.placeholder == "press i to write to Scripted"
        await stage.until(lambda: "Scripted asks: Edit bill.py" in stage.notice, "a question")
        assert "? your turn" in status(stage)
        await stage.until(lambda: "+ def tax(amount, rate=0.2):" in shown(stage), "the edit")
        text = shown(stage)
        assert "› give tax a rate" in text
        assert "I add a **rate** now." in text
        assert "\x1b" not in text
        # The question stands where it is answered, and nowhere else.
        assert "? asked below" in text
        assert "Edit bill.py" not in text
        assert bill.read_text() == OLD
        # "Allow" for once comes first, for ever last.
        assert stage.screen.notices.choices == ("Allow", "Reject", "Always allow")
        await stage.press("1")
        store = stage.session.hunks
        await stage.until(lambda: len(store.undecided()) == 1, "a hunk of the agent's")
        assert bill.read_text() == NEW
        await stage.until(lambda: "✓ allowed  Edit bill.py" in shown(stage), "what was answered")
        await stage.until(lambda: not stage.session.agent.busy, "the end of the turn")
        await stage.until(lambda: stage.screen.state.path == "pkg/bill.py", "the file")
        await stage.press("r")
        await stage.until(lambda: bill.read_text() == OLD, "put back")


async def test_what_is_asked_about_has_the_room_of_the_plan(project: Path, tmp_path: Path) -> None:
    (project / "pkg" / "bill.py").write_text(OLD)
    entries = [{"content": "Add a rate", "status": "in_progress", "priority": "low"}]
    plan = {"update": {"sessionUpdate": "plan", "entries": entries}}
    go = tmp_path / "go"
    steps = [plan, {"file": str(go)}, ask(project / "pkg" / "bill.py"), END]
    async with on_stage(project, size=(80, 24)) as stage:
        await begin(stage, tmp_path, steps)
        await stage.until(lambda: "edits one function" not in welcome(stage), "not of the agent")
        await type_text(stage, "give tax a rate")
        view = stage.screen.panes.conversation
        assert view is not None
        steps_shown = view.query_one("#plan", Static)
        await stage.until(lambda: steps_shown.display, "the plan")
        go.touch()
        await stage.until(lambda: stage.choices, "a question")
        await stage.until(lambda: not steps_shown.display, "room")
        await stage.press("2")
        await stage.until(lambda: steps_shown.display, "the plan again")


def welcome(stage: Stage) -> str:
    return stage.screen.panes.welcome.render().plain


@pytest.mark.system
async def test_whatever_comes_at_once_is_shown_in_order(project: Path, tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = []
    for number in range(60):
        steps += [said("agent_message_chunk", f"say{number} "), said("agent_message_chunk", "so ")]
        tool = {"toolCallId": f"t{number}", "title": f"use{number} ", "status": "pending"}
        steps += [
            {"update": {"sessionUpdate": "tool_call", **tool}},
            {"update": {**tool, "sessionUpdate": "tool_call_update", "status": "completed"}},
        ]
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [*steps, END])
        await type_text(stage, "go")
        await stage.until(lambda: "✓ use59" in shown(stage), "the end of it")
        await stage.until(lambda: scrolled_up(stage) and "say0 " in shown(stage), "all of it")
        places = [
            shown(stage).index(words)
            for number in range(60)
            for words in (f"say{number} so", f"✓ use{number} ")
        ]
        assert places == sorted(places)


@pytest.mark.system
async def test_a_flood_is_followed_at_its_end(project: Path, tmp_path: Path) -> None:
    """Widgets for all of it would take the screen minutes, and one paragraph of it seconds."""
    words = [said("agent_message_chunk", f"flood {number}\n") for number in range(3000)]
    uses = [
        {
            "update": {
                "sessionUpdate": "tool_call",
                "toolCallId": f"t{number}",
                "title": f"use{number} " + "x" * 5000,
                "status": "completed",
            }
        }
        for number in range(2000)
    ]
    line = said("agent_message_chunk", "[" * 20_000 + "\n\nstill here")
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [*words, *uses, line, END])
        await type_text(stage, "go")
        await stage.until(lambda: "still here" in shown(stage), "the end of it")
        conversation = stage.session.agent.conversation
        view = stage.screen.panes.conversation
        assert conversation is not None
        assert view is not None
        spoken = [entry.text for entry in conversation.entries if isinstance(entry, Speech)]
        assert "".join(spoken[1:-1]) == "".join(f"flood {number}\n" for number in range(3000))
        assert max(map(len, spoken[:-1])) < 2 * MAX_BLOCK
        assert len(view.query(ToolLines)) <= pane.MAX_WIDGETS
        await stage.until(lambda: not view.query_one("#flood").display, "the end of the flood")
        await stage.until(lambda: scrolled_up(stage) and "use1999" in shown(stage), "the tools")
        assert shown(stage).count("[") == 20_000


@pytest.mark.system
async def test_a_link_to_a_file_opens_it_here(project: Path, tmp_path: Path) -> None:
    (project / "pkg" / "bill.py").write_text(OLD)
    words = "See [the bill](pkg/bill.py#L2), or [the secret](../../etc/passwd)."
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [said("agent_message_chunk", words), END])
        await type_text(stage, "where?")
        await stage.until(lambda: "the secret" in shown(stage), "the answer")
        markdown = stage.screen.query_one(Markdown)
        before = stage.screen.state.path
        markdown.post_message(Markdown.LinkClicked(markdown, "../../etc/passwd"))
        await stage.pilot.pause()
        assert stage.screen.state.path == before
        markdown.post_message(Markdown.LinkClicked(markdown, "pkg/bill.py#L2"))
        await stage.until(lambda: stage.screen.state.path == "pkg/bill.py", "the file")


async def test_a_link_to_a_page_is_shown_by_the_browser(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, address = tmp_path / "browser", "https://example.org/a?b=c"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/shown\n'
    )
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [said("agent_message_chunk", f"[page]({address})"), END])
        await type_text(stage, "where?")
        await stage.until(lambda: "page" in shown(stage), "the answer")
        markdown = stage.screen.query_one(Markdown)
        markdown.post_message(Markdown.LinkClicked(markdown, address))
        await stage.until((tmp_path / "shown").exists, "the browser")
    assert (tmp_path / "shown").read_text() == f"{address}\n"


async def test_a_whole_file_is_shown_by_what_it_changes(project: Path, tmp_path: Path) -> None:
    rest = "\n\n".join(f"def f{n}():\n    return {n}\n" for n in range(60))
    old, new = f"{rest}\n\n{OLD}", f"{rest}\n\n{NEW}"
    bill = project / "pkg" / "bill.py"
    bill.write_text(old)
    diff = {"type": "diff", "path": str(bill), "oldText": old, "newText": new}
    # Told before the question, and not in it.
    call = {"sessionUpdate": "tool_call", **CALL, "title": "Edit bill.py", "content": [diff]}
    steps = [
        {"update": call},
        {"ask": {"toolCall": {**CALL, "title": "Edit files"}, "options": OPTIONS}},
        END,
    ]
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, steps)
        await type_text(stage, "give tax a rate")
        await stage.until(lambda: "+     return amount * rate" in shown(stage), "the edit")
        assert "f59" not in shown(stage)
        await stage.until(lambda: stage.screen.state.path == "pkg/bill.py", "the file")
        line = old.splitlines().index(OLD.splitlines()[0])
        await stage.until(lambda: stage.pane.cursor == line, "the place")
        await stage.press("2")
        await stage.until(lambda: not stage.session.agent.busy, "the end of the turn")


async def test_enter_on_a_tool_goes_to_its_hunk_or_unfolds_its_output(
    project: Path, tmp_path: Path
) -> None:
    rest = "\n\n".join(f"def f{n}():\n    return {n}\n" for n in range(60))
    bill = project / "pkg" / "bill.py"
    bill.write_text(f"{rest}\n\n{OLD}")
    diff = {"type": "diff", "path": str(bill), "oldText": OLD, "newText": NEW}
    output = {"type": "content", "content": {"type": "text", "text": "```\n2 passed\x1b[1m\n```"}}

    def call(number: int, title: str, **more: Any) -> dict[str, Any]:
        known = {"toolCallId": f"t{number}", "title": title, "status": "completed", **more}
        return {"update": {"sessionUpdate": "tool_call", **known}}

    steps = [
        call(1, "Edit bill.py", content=[diff]),
        {"write": {str(bill): f"{rest}\n\n{NEW}"}},
        call(2, "pytest", content=[output]),
        call(3, "Read secrets", locations=[{"path": "/etc/passwd"}]),
        call(4, "Edit it again", status="failed", content=[output, diff]),
        END,
    ]
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await begin(stage, tmp_path, steps)
        await type_text(stage, "give tax a rate")
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 1, "the hunk")
        await stage.until(lambda: not stage.session.agent.busy, "the end of the turn")
        await stage.until(lambda: "Edit it again" in shown(stage), "the tools")
        pane = stage.screen.panes.conversation
        assert pane is not None

        def hints() -> str:
            return stage.screen.panes.keys.render().plain

        await stage.press("escape", "shift+tab")
        await stage.until(lambda: pane.has_focus, "the keys there")
        await stage.until(lambda: "unfold" in hints(), "what Enter does to what has failed")
        assert "2 passed" not in shown(stage)
        await stage.press("enter")
        await stage.until(lambda: "2 passed" in shown(stage), "why it has failed")
        assert "\x1b" not in shown(stage)
        await stage.press("enter")
        await stage.until(lambda: "2 passed" not in shown(stage), "folded")
        await stage.press("k", "enter")
        await stage.until(lambda: "not in this folder" in stage.notice, "nothing to show")
        await stage.press("k", "enter")
        await stage.until(lambda: "2 passed" in shown(stage), "its output")
        await stage.press("k", "k", "k")  # there is no tool above
        await stage.until(lambda: "go to it" in hints(), "what Enter does")
        await stage.press("enter")
        await stage.until(lambda: stage.screen.state.path == "pkg/bill.py", "the file")
        (hunk,) = stage.session.hunks.undecided()
        await stage.until(lambda: stage.pane.hunk is not None, "the place")
        assert stage.pane.hunk is hunk
        assert stage.pane.has_focus
        await stage.press("escape")  # takes the notice away
        await stage.press("shift+tab")
        await stage.until(lambda: pane.has_focus, "the keys there again")
        await stage.press("escape")
        await stage.until(lambda: stage.pane.has_focus, "back in the code")


async def test_a_stop_cancels_the_question(project: Path, tmp_path: Path) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(OLD)
    steps = [ask(bill), {"result": {"stopReason": "cancelled"}}]
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, steps, ends_turn=True)
        await type_text(stage, "give tax a rate")
        await stage.until(lambda: stage.session.agent.asking, "a question")
        wanted = ("Allow", "Reject (ends its turn)", "Always allow")
        await stage.until(lambda: stage.screen.notices.choices == wanted, "what an answer does")
        await type_text(stage, "and then the docs")
        assert "when Scripted is done" in stage.notice
        await stage.press("ctrl+c")
        outcome = {"result": {"outcome": {"outcome": "cancelled"}}}
        log = tmp_path
        await stage.until(
            lambda: any(m.get("result") == outcome["result"] for m in sent(log)), "the answer"
        )
        assert bill.read_text() == OLD
        # The queued text is sent once the first turn has ended.
        await stage.until(lambda: "› and then the docs" in shown(stage), "the next turn")


async def test_quitting_says_that_the_agent_waits_for_an_answer(
    project: Path, tmp_path: Path
) -> None:
    bill = project / "pkg" / "bill.py"
    bill.write_text(OLD)
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [ask(bill)])
        await type_text(stage, "give tax a rate")
        await stage.until(lambda: "Scripted asks" in stage.notice, "a question")
        await stage.press("escape", "ctrl+q")
        asked = "Scripted waits for your answer. Quit anyway?"
        await stage.until(lambda: stage.notice == asked, "asked")
        await stage.press("1", "q")
        await stage.until(lambda: stage.notice == "q again quits; Scripted waits for your answer.")
        await stage.press("q")
        await stage.until(lambda: not stage.app.is_running, "the end")


async def test_a_long_question_leaves_room_for_its_answers(project: Path, tmp_path: Path) -> None:
    command = " && ".join(f"echo {number} > file{number}" for number in range(50)) + " && the end"
    call = {**CALL, "title": command, "kind": "execute"}
    steps = [{"ask": {"toolCall": call, "options": OPTIONS}}, END]
    async with on_stage(project, size=(80, 24)) as stage:
        await begin(stage, tmp_path, steps)
        await stage.press("escape", "D")
        await stage.until(lambda: stage.screen.panes.conversation is None, "nothing beside")
        await type_text(stage, "make files")
        await stage.until(lambda: stage.session.agent.asking, "a question")
        await stage.until(
            lambda: "&& the end" in " ".join(shown(stage).split()),
            "all of it, shown again for this",
        )
        line = stage.screen.notices.line
        await stage.until(lambda: 0 < line.size.height <= 4, "room")
        assert "1 Allow" in line.render().plain
        await stage.press("2")
        await stage.until(lambda: stage.screen.panes.conversation is None, "hidden as before")


async def test_the_conversation_can_be_hidden_and_stands_below_where_it_is_narrow(
    project: Path, tmp_path: Path
) -> None:
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [said("agent_message_chunk", "Hello."), END])
        await type_text(stage, "hello")
        await stage.until(lambda: "Hello." in shown(stage), "an answer")
        await stage.press("D")
        await stage.until(lambda: stage.screen.panes.conversation is None, "nothing beside")
        await stage.press("D")
        await stage.until(lambda: "Hello." in shown(stage), "the conversation again")
        await stage.pilot.resize_terminal(80, 24)
        pane = stage.screen.panes.conversation
        assert pane is not None
        await stage.until(lambda: pane.region.width == 80, "the whole width")
        assert pane.region.y > stage.screen.query_one("#centre").region.y
        assert stage.screen.query_one("#centre").region.width == 80
        height = pane.region.height
        await stage.open("pkg/things.py")
        await stage.until(lambda: pane.region.height < height, "room for the code")
        height = pane.region.height
        await stage.press("D")
        await stage.until(lambda: stage.screen.panes.conversation is None, "nothing below")
        await stage.press("D")
        await stage.until(lambda: "Hello." in shown(stage), "the conversation again")
        assert stage.screen.panes.conversation is not pane
        assert stage.screen.panes.conversation.region.height == height


async def test_the_agents_mode_and_model_are_chosen(project: Path, tmp_path: Path) -> None:
    def option(name: str, category: str, *values: str) -> dict[str, Any]:
        offered = [{"value": each, "name": each.title()} for each in values]
        return {
            "id": category,
            "name": name,
            "category": category,
            "type": "select",
            "currentValue": values[0],
            "options": offered,
        }

    before = [option("Mode", "mode", "ask", "auto"), option("Model", "model", "small", "large")]
    after = [before[0], {**before[1], "currentValue": "large"}]
    script = {
        "session/new": [{"result": {"sessionId": "s-1", "configOptions": before}}],
        "session/set_config_option": [{"result": {"configOptions": after}}],
    }
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [END], **script)
        await stage.until(lambda: "mode Ask  model Small" in shown(stage), "what is in force")
        await stage.press("escape", "m")
        await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "the choices")
        await stage.press("down", "down", "down", "enter")
        await stage.until(lambda: "mode Ask  model Large" in shown(stage), "another model")
        assert "Model Large" in stage.notice
        (chosen,) = (
            m["params"] for m in sent(tmp_path) if m.get("method") == "session/set_config_option"
        )
        assert (chosen["configId"], chosen["value"]) == ("model", "large")


async def test_how_full_its_context_is_stands_below_the_agents_name(
    project: Path, tmp_path: Path
) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    usage = {"sessionUpdate": "usage_update", "used": 50, "size": 200}
    cost = {"amount": 0.125, "currency": "USD"}
    script = {"session/new": [{"result": {"sessionId": "s-1", "modes": modes}}]}
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [{"update": {**usage, "cost": cost}}, END], **script)
        await type_text(stage, "hello")
        await stage.until(lambda: "\nmode Ask  context 25%, 0.12 USD" in shown(stage), "its usage")
        pane = stage.screen.panes.conversation
        assert pane is not None
        about = pane.query_one("#about", Static)
        await stage.until(lambda: about.size.height == 2, "two lines")
        await stage.pilot.resize_terminal(80, 24)
        await stage.until(lambda: about.size.height == 1, "one line below the code")


@pytest.mark.system
async def test_a_choice_that_the_agent_refuses_is_told(project: Path, tmp_path: Path) -> None:
    modes = {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "auto", "name": "Auto"}],
    }
    script = {
        "session/new": [{"result": {"sessionId": "s-1", "modes": modes}}],
        "session/set_mode": [{"error": {"code": -32603, "message": "not for you"}}],
    }
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [END], **script)
        await stage.press("escape", "m")
        await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "the choices")
        await stage.press("down", "enter")
        await stage.until(lambda: "not for you" in stage.notice, "the refusal")
        await stage.until(lambda: "mode Ask" in shown(stage), "the mode that stays")


async def test_an_agent_that_cannot_be_started_leaves_the_model_in_place(project: Path) -> None:
    agent = KnownAgent("x", "Agent X", ("no-such-program",), install="npm install -g x")
    async with on_stage(project) as stage:
        stage.session.agent.launch(agent)
        await stage.until(lambda: "npm install -g x" in stage.notice, "what to do")
        assert not stage.session.agent.on


async def test_the_models_page_starts_an_agent_and_goes_back_to_a_model(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [said("agent_message_chunk", "Hello."), END]
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "claude-agent-acp"
    scripted = shlex.join(command(folder, {**BEGIN, "session/prompt": steps}))
    program.write_text(f"#!/bin/sh\nexec {scripted}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    async with on_stage(project) as stage:
        await stage.press("escape", "M")
        await stage.until(lambda: isinstance(stage.app.screen, ModelsScreen), "the page")
        page = stage.app.screen
        assert isinstance(page, ModelsScreen)
        await stage.until(lambda: page.read, "the models")
        await stage.until(lambda: page.notices.asking or page.choices, "all of it")
        page.list.show(page.list.rows, select="agent opencode")
        await stage.press("enter")
        await stage.until(lambda: "npm install -g opencode-ai" in page.notices.line.text, "how")
        page.list.show(page.list.rows, select="agent claude")
        await stage.press("enter")
        await stage.until(lambda: stage.session.agent.conversation is not None, "the agent")
        await stage.until(lambda: "To Claude Code" in stage.title, "where text goes")
        await type_text(stage, "hello")
        await stage.until(lambda: "Hello." in shown(stage), "an answer")
        await stage.until(lambda: not stage.session.agent.busy, "its end")
        await stage.session.agent.end()
        await stage.until(lambda: "Instruct" in stage.title, "the model again")
        assert stage.screen.panes.conversation is None


@pytest.mark.system
async def test_only_the_newest_messages_have_widgets_until_one_scrolls_up(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane, "MAX_LINES", 40)
    steps: list[dict[str, Any]] = []
    for number in range(30):
        steps.append(said("agent_message_chunk", f"say{number:02}\n\nmore\n\n"))
        tool = {"toolCallId": f"t{number}", "title": f"use{number:02} ", "status": "completed"}
        steps.append({"update": {"sessionUpdate": "tool_call", **tool}})
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [*steps, END])
        await type_text(stage, "go")
        await stage.until(lambda: "use29" in shown(stage), "the end")
        await stage.until(lambda: "say00" not in shown(stage), "the beginning dropped")
        await stage.until(lambda: "earlier messages: scroll up" in shown(stage), "that it is told")
        said_and_used = [words for n in range(30) for words in (f"say{n:02}", f"use{n:02}")]

        def whole() -> bool:
            return scrolled_up(stage) and all(words in shown(stage) for words in said_and_used)

        await stage.until(whole, "the beginning")
        text = shown(stage)
        places = [text.index(words) for words in said_and_used]
        assert places == sorted(places)
        assert "earlier messages" not in text


async def test_another_theme_recolours_the_head_of_the_conversation(
    project: Path, tmp_path: Path
) -> None:
    async with on_stage(project) as stage:
        await begin(stage, tmp_path, [END])
        await stage.until(lambda: "Scripted" in shown(stage), "its head")
        view = stage.screen.panes.conversation
        assert view is not None

        def colours() -> set[str]:
            head = view.query_one("#about", Static).content
            assert isinstance(head, Text)
            return {str(span.style) for span in head.spans}

        before = colours()
        stage.app.use_theme("paper")
        await stage.until(lambda: colours().isdisjoint(before), "other colours")
