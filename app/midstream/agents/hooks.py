"""Hooks of Claude Code and Codex: their input, the answers to it, and the socket a session listens
on.

Both agents run a command before a tool is used and when they are about to stop.  The command is
``midstream hook`` (``hook_client``), which hands the event to the session and prints its answer.
Facts: code.claude.com/docs/en/hooks, developers.openai.com/codex/hooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final, cast

import msgspec

from midstream import processes
from midstream.agents.hook_client import (
    HOOK_TIMEOUT_S,
    MAX_EVENT_BYTES,
    excess,
    is_private,
    refusal,
    socket_folder,
    socket_prefix,
    unreadable,
)
from midstream.errors import UserError
from midstream.workspace.paths import make_private

BEFORE_TOOL: Final = "PreToolUse"
AT_STOP: Final = "Stop"
COMMAND: Final = "midstream hook"
"""The command line; Codex trusts hooks by its hash, so it never changes.

Where the agent would not find the program by its name, it is named with its folder.
"""

_MATCHERS: Final = {"claude": "Edit|MultiEdit|Write|NotebookEdit", "codex": "apply_patch"}

_OWN_FOLDERS: Final = ("~/.claude", "~/.codex")
_OWN_VARIABLES: Final = ("CLAUDE_CONFIG_DIR", "CODEX_HOME")

_POWERS: Final = frozenset(("agents", "commands", "hooks", "output-styles", "plugins", "skills"))
"""The agents' own folders whose Markdown files instruct an agent."""

HookAnswer = dict[str, Any]
"""The output of a hook, as JSON."""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event that an agent waits for an answer to.

    Attributes:
        kind: ``BEFORE_TOOL``, ``AT_STOP`` or another kind of hook.
        agent: What people call the agent.
        cwd: The agent's folder, which relative paths refer to.
        session_id: The agent's name for its conversation.
        tool: The tool that it wants to use.
        arguments: The tool's input.
        stopped_before: Whether it goes on only because of an earlier answer at ``AT_STOP``.
    """

    kind: str
    agent: str
    cwd: str
    session_id: str
    tool: str
    arguments: dict[str, Any]
    stopped_before: bool

    @classmethod
    def read(cls, line: bytes) -> HookEvent | None:
        """An event as the client sends it; ``None`` if it is not one.

        Fields that only name the agent or its conversation may be missing or malformed; fields
        about the edit may not.
        """
        if excess(line):
            return None
        try:
            message: object = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return None
        if not isinstance(message, dict):
            return None
        said = cast("dict[str, Any]", message)
        kind, tool, cwd = (said.get(key, "") for key in ("hook_event_name", "tool_name", "cwd"))
        given: object = said.get("tool_input", {})
        if not all(isinstance(value, str) for value in (kind, tool, cwd)):
            return None
        if not isinstance(given, dict):
            return None
        codex = said.get("turn_id") or tool == "apply_patch"
        session = said.get("session_id")
        return cls(
            kind,
            "Codex" if codex else "Claude Code",
            cwd,
            session if isinstance(session, str) else "",
            tool,
            cast("dict[str, Any]", given),
            said.get("stop_hook_active") is True,
        )


def is_note(event: HookEvent, root: Path) -> bool:
    """Whether an edit is of a plan or a memory that an agent keeps in its own folder (blocking).

    Settings, hooks, commands, skills and the like do not count: they decide what the agent may do.

    Args:
        event: The edit.
        root: The folder that is reviewed; nothing in it is a note.
    """
    named = event.arguments.get("file_path")
    if event.tool == "apply_patch" or not isinstance(named, str):  # A patch names its files itself.
        return False
    path = Path(event.cwd, named).resolve()
    set_by_user = filter(None, map(os.environ.get, _OWN_VARIABLES))
    own = (Path(n).expanduser().resolve() for n in (*_OWN_FOLDERS, *set_by_user))
    folder = next(filter(path.is_relative_to, own), None)
    if folder is None or path.is_relative_to(root.resolve()):
        return False
    return path.suffix == ".md" and not _POWERS.intersection(path.relative_to(folder).parts)


def allow(arguments: dict[str, Any] | None = None, context: str = "") -> HookAnswer:
    """Let the tool run, with other input if that is given, and tell the model something."""
    answer: dict[str, Any] = {"hookEventName": BEFORE_TOOL, "permissionDecision": "allow"}
    if arguments is not None:
        answer["updatedInput"] = arguments
    if context:
        answer["additionalContext"] = context
    return {"hookSpecificOutput": answer}


deny = refusal
"""Do not let the tool run; the model reads why."""


def go_on(reason: str) -> HookAnswer:
    """Have an agent that is about to stop read this and go on."""
    return {"decision": "block", "reason": reason}


def hook_settings(agent: str, command: str = COMMAND) -> dict[str, Any]:
    """The ``hooks`` of an agent's settings that make it ask the session.

    Args:
        agent: ``"claude"`` or ``"codex"``.
        command: What the agent runs.
    """
    run = {"type": "command", "command": command, "timeout": HOOK_TIMEOUT_S}
    return {
        BEFORE_TOOL: [{"matcher": _MATCHERS[agent], "hooks": [run]}],
        AT_STOP: [{"hooks": [run]}],
    }


def session_meta(agent: str) -> dict[str, Any] | None:
    """The ``_meta`` of ``session/new`` that gives an agent the hooks for that session alone.

    Args:
        agent: The agent's name in the catalogue.

    Returns:
        ``None`` where only the agent's own settings can name hooks.
    """
    if agent != "claude":
        return None
    here = processes.shell_command("midstream", "hook")
    return {"claudeCode": {"options": {"settings": {"hooks": hook_settings(agent, here)}}}}


class HookEndpoint:
    """The socket on which the hooks of agents in a folder are answered.

    Args:
        root: The folder.
        answer: Gives the answer to an event, ``None`` for none; cancelled when the agent does not
            wait any more.
    """

    def __init__(
        self, root: Path, answer: Callable[[HookEvent], Awaitable[HookAnswer | None]]
    ) -> None:
        self._root = os.path.realpath(root)
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._address: Path | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen.

        Raises:
            UserError: The system refuses.
        """
        folder = Path(socket_folder())
        prefix = socket_prefix(self._root)
        address = folder / f"{prefix}{os.getpid()}"
        try:
            make_private(folder)
            if not is_private(str(folder)):
                raise UserError(f"{folder} can be opened by others", "delete it, then try again")
            _remove_stale(folder)
            address.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(
                self._connected, address, limit=2 * MAX_EVENT_BYTES
            )
            address.chmod(0o600)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(f"Agents cannot ask before they write: {reason}.") from error
        self._address = address

    async def close(self) -> None:
        """Stop listening; the hook client refuses the edits of agents that still wait."""
        if self._address is not None:
            self._address.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others listen there
                self._address.parent.rmdir()
            self._address = None
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            event = HookEvent.read(await reader.readline())
            output: HookAnswer | None = unreadable()
            if event is not None:
                answering = asyncio.ensure_future(self._answer(event))
                gone = asyncio.ensure_future(reader.read(1))
                try:
                    await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    gone.cancel()
                    if not answering.done():
                        answering.cancel()
                    await asyncio.wait({answering})
                if answering.cancelled():
                    return
                output = answering.result()
            writer.write(json.dumps({"output": output}).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError):  # the agent is gone, or sent more than it may
            pass
        finally:
            writer.close()


def _remove_stale(folder: Path) -> None:
    """Remove the sockets of sessions that were killed."""
    for address in folder.iterdir():
        pid = address.name.rpartition("-")[2]
        if not (pid.isdecimal() and processes.runs(int(pid))):
            with contextlib.suppress(OSError):
                address.unlink()


def merged_hooks(existing: dict[str, Any], agent: str, command: str = COMMAND) -> dict[str, Any]:
    """An agent's settings with ours among its hooks; equal to ``existing`` if they are there.

    Args:
        existing: The settings.
        agent: See ``hook_settings``.
        command: The same.

    Raises:
        UserError: Its hooks are not what the agent expects.
    """
    hooks = existing.get("hooks", {})
    if not isinstance(hooks, dict):
        raise UserError('"hooks" in that file is not a table; correct it first.')
    merged: dict[str, Any] = dict(cast("dict[str, Any]", hooks))
    for kind, groups in hook_settings(agent, command).items():
        present: object = merged.get(kind, [])
        if not isinstance(present, list):
            raise UserError(f'"hooks.{kind}" in that file is not a list; correct it first.')
        others = [group for group in cast("list[object]", present) if not _is_ours(group)]
        if any(group not in present for group in groups):
            merged[kind] = [*others, *groups]
    return {**existing, "hooks": merged}


def without_hooks(existing: dict[str, Any]) -> dict[str, Any]:
    """An agent's settings without our hooks; equal to ``existing`` if there are none."""
    hooks: object = existing.get("hooks")
    if not isinstance(hooks, dict):
        return existing
    left: dict[str, Any] = {}
    for kind, groups in cast("dict[str, Any]", hooks).items():
        kept = groups
        if isinstance(groups, list):
            kept = [
                other for group in cast("list[object]", groups) for other in _without_ours(group)
            ]
        if kept or not groups:
            left[kind] = kept
    if left == hooks:
        return existing
    others = {key: value for key, value in existing.items() if key != "hooks"}
    return {**existing, "hooks": left} if left else others


def _without_ours(group: object) -> list[object]:
    """A group of hooks without ours; none if there is no other."""
    hooks: object = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list):
        return [group]
    every = cast("list[object]", hooks)
    others = [hook for hook in every if not _runs_ours(hook)]
    if len(others) == len(every):
        return [group]
    return [{**cast("dict[str, Any]", group), "hooks": others}] if others else []


def _runs_ours(hook: object) -> bool:
    command = cast("dict[str, Any]", hook).get("command") if isinstance(hook, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # A quotation mark is open.
        return False
    return len(words) == 2 and words[1] == "hook" and PurePath(words[0]).name == "midstream"


def _is_ours(group: object) -> bool:
    """Whether a group of hooks has only ours, perhaps for fewer tools than now."""
    hooks: object = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    every = cast("list[dict[str, Any]]", hooks) if isinstance(hooks, list) else []
    keys = {"type", "command", "timeout"}
    return len(every) == 1 and _runs_ours(every[0]) and every[0].keys() == keys
