"""Every call of a tool is decided or denied: none passes because it cannot be read."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from midstream.agents import hook_client
from midstream.agents.hooks import HookEndpoint, HookEvent, deny
from midstream.edits.agent_input import OTHER_TOOLS
from midstream.pairing.session import PairingSession
from midstream.workspace.paths import make_private
from tests.helpers.pairing import make_repo

PATCH = "*** Begin Patch\n*** Update File: run.py\n@@\n-x = 1\n+x = 2\n*** End Patch\n"
# Inputs of the edit tools of Claude Code, Codex, Gemini CLI and OpenCode.
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("Edit", {"file_path": "run.py", "old_string": "x = 1", "new_string": "x = 2"}),
    ("Write", {"file_path": "run.py", "content": "x = 2\n"}),
    ("MultiEdit", {"file_path": "run.py", "edits": [{"old_string": "x", "new_string": "y"}]}),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "x", "cell_id": "1"}),
    ("apply_patch", {"command": PATCH}),
    ("apply_patch", {"input": PATCH}),
    ("replace", {"file_path": "run.py", "old_string": "x = 1", "new_string": "x = 2"}),
    ("write_file", {"file_path": "run.py", "content": "x = 2\n"}),
    ("edit", {"filePath": "run.py", "oldString": "x = 1", "newString": "x = 2"}),
    ("write", {"filePath": "run.py", "content": "x = 2\n"}),
]
ODD: list[Any] = [
    *(None, True, -1, 1e308, 10**40, "", "\0", "\ud800", "\udc80", "../..", "/", "~/x"),
    *("/etc/x", "a" * 300, "\u202e", [], {}, [[]], {"a": {"b": []}}, "run.py", ".git/config"),
]
BYTES = [b"\xff", b"\xef\xbb\xbf", b"\0", b"[" * 2000, b"{", b"}", b'"', b"\\ud800", b"\n", b"NaN"]


def event(root: Path, tool: str, given: object) -> dict[str, Any]:
    return {
        "session_id": "s",
        "cwd": str(root),
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": given,
    }


def mutated(rng: random.Random, root: Path) -> bytes:
    """A damaged call, or an intact one."""
    tool, given = rng.choice(TOOLS)
    call = event(root, tool, dict(given))
    for _ in range(rng.randint(0, 3)):
        table = rng.choice([call, call["tool_input"]])
        if not isinstance(table, dict) or not table:
            continue
        key = rng.choice(list(table))
        if rng.random() < 0.2:
            del table[key]
        elif rng.random() < 0.2:
            table[str(rng.choice(ODD))] = table[key]
        else:
            table[key] = rng.choice(ODD)
        call.setdefault("tool_input", {})
    line = json.dumps(call).encode()
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(line) + 1)
        line = line[:at] + rng.choice(BYTES) + line[at + rng.choice((0, 0, 1, 9)) :]
    return line


def says_no(answer: dict[str, Any] | None) -> bool:
    return answer is not None and (
        answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        and bool(answer["hookSpecificOutput"]["permissionDecisionReason"])
    )


def may_pass(line: bytes) -> bool:
    """Whether an event is of a tool that edits no files, or of no tool."""
    try:
        call = json.loads(line)
        return call["tool_name"] in OTHER_TOOLS or call["hook_event_name"] in ("Stop",)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_repo(tmp_path / "work", {"run.py": "x = 1\n"})
    monkeypatch.chdir(root)
    return root


class Listener:
    """A session's socket, for a client in another thread."""

    def __init__(self, root: Path) -> None:
        self.heard: list[HookEvent] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.endpoint = HookEndpoint(root, self._answer)
        self.call(self.endpoint.open())

    def call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _answer(self, event: HookEvent) -> dict[str, Any]:
        self.heard.append(event)
        return deny("seen")

    def close(self) -> None:
        self.call(self.endpoint.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def listener(root: Path) -> Iterator[Listener]:
    listener = Listener(root)
    yield listener
    listener.close()


def answered(raw: bytes) -> dict[str, Any] | None:
    out = io.StringIO()
    assert hook_client.main(io.BytesIO(raw), out) == 0
    return json.loads(out.getvalue()) if out.getvalue() else None


def answer_to(call: dict[str, Any]) -> dict[str, Any] | None:
    return answered(json.dumps(call).encode())


def calls_through_the_client(root: Path, count: int) -> None:
    rng = random.Random(count)
    for number in range(count):
        raw = mutated(rng, root)
        assert says_no(answered(raw)), (number, raw)


def test_the_client_denies_what_it_cannot_read(root: Path, listener: Listener) -> None:
    assert says_no(answer_to(event(root, *TOOLS[0])))
    assert listener.heard, "the call itself reaches the session"
    for raw in (
        b"",
        b"hello",
        b"[1]",
        b"\xff",
        b"[" * 100_000,
        b" " * (hook_client.MAX_EVENT_BYTES + 1),
    ):
        assert says_no(answered(raw)), raw[:20]
    calls_through_the_client(root, 300)


def test_a_call_that_is_too_long_is_denied_unasked(root: Path, listener: Listener) -> None:
    call = json.dumps(event(root, *TOOLS[0])).encode()
    answer = answered(call + b" " * hook_client.MAX_EVENT_BYTES)
    assert says_no(answer)
    assert "more than 8 MB" in str(answer)
    assert listener.heard == []


def test_a_call_of_very_many_values_is_denied_unasked(root: Path, listener: Listener) -> None:
    """To read it takes long; commas in a text do not."""
    many = hook_client.MAX_EVENT_VALUES
    call = event(root, "Write", {"file_path": "a.csv", "content": '"\\",\n' * many})
    line = json.dumps(call).encode()
    assert HookEvent.read(line) is not None
    assert says_no(answered(line))
    assert len(listener.heard) == 1
    line = json.dumps({**call, "more": [[]] * many}).encode()
    assert HookEvent.read(line) is None
    assert "more than 100,000 values" in str(answered(line))
    assert len(listener.heard) == 1


def test_an_input_that_cannot_be_read_is_denied_where_a_session_watches(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> None:
    def without_input() -> str:
        out = io.StringIO()
        with (tmp_path / "written only").open("wb") as given:
            assert hook_client.main(given, out) == 0
        return out.getvalue()

    assert says_no(json.loads(without_input()))
    assert listener.heard == []
    monkeypatch.chdir(tmp_path)
    assert without_input() == "", "no session watches this folder"


def test_a_folder_of_sockets_that_others_can_open_is_no_consent(
    root: Path, tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What listens there may be a stranger's; nothing is sent to it."""
    folder = Path(hook_client.socket_folder())
    folder.chmod(0o755)
    try:
        assert "chmod 700" in str(answer_to(event(root, *TOOLS[0])))
        assert says_no(answer_to(event(root, *TOOLS[0])))
        monkeypatch.chdir(tmp_path)
        assert answer_to(event(tmp_path, "Write", {"file_path": "x"})) is None
    finally:
        folder.chmod(0o700)
    assert listener.heard == []


@pytest.mark.parametrize("failing", ["listdir", "lstat", "socket", "connect", "realpath"])
def test_a_system_call_that_fails_is_no_consent(
    root: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_args: object, **_more: object) -> None:
        raise PermissionError(13, "denied")

    where = {"socket": socket, "connect": socket.socket, "realpath": os.path}.get(failing, os)
    with monkeypatch.context() as patched:
        patched.setattr(where, failing, fail)
        assert says_no(answer_to(event(root, *TOOLS[0])))
        assert says_no(answered(b"hello"))
    assert listener.heard == []


def test_ctrl_c_is_no_consent(root: Path, listener: Listener) -> None:
    class Interrupted(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            raise KeyboardInterrupt

    out = io.StringIO()
    assert hook_client.main(Interrupted(), out) == 0
    assert says_no(json.loads(out.getvalue()))


def test_a_working_folder_that_is_gone_hides_no_call(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    call = event(root, "Write", {"file_path": str(root / "run.py"), "content": ""})
    assert says_no(answer_to(call))
    assert len(listener.heard) == 1
    assert answer_to(event(gone, "Write", {"file_path": "x"})) is None
    assert answered(b"hello") is None


@pytest.mark.system
@pytest.mark.timeout(900)
def test_the_client_denies_ten_thousand_mutated_calls(root: Path, listener: Listener) -> None:
    calls_through_the_client(root, 10_000)


def test_a_patch_and_other_names_of_paths_find_the_session(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    patch = PATCH.replace("run.py", str(root / "run.py"))
    for given in (
        {"command": patch},
        {"notebook_path": str(root / "a.ipynb")},
        {"filePath": str(root / "run.py")},
        {"edits": [{"path": str(root / "run.py")}]},
        {"file_paths": [str(root / "run.py")]},
        {"file_path": f"~/{os.path.relpath(root / 'run.py', Path.home())}"},
    ):
        call = event(elsewhere, "apply_patch", given)
        assert says_no(answer_to(call)), given
        assert says_no(answered(json.dumps(call).encode() + b"}")), "unreadable"
    call = event(elsewhere, "Write", {"file_path": "x", "content": ""})
    assert answer_to(call) is None
    assert answered(b"hello") is None, "silent where no session watches"


def test_a_session_that_is_too_busy_to_accept_is_no_consent(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_client, "GIVE_UP_S", 0.2)
    folder = make_private(Path(hook_client.socket_folder()))
    folder.chmod(0o700)
    address = folder / f"{hook_client.socket_prefix(os.path.realpath(root))}{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as first:
        busy.bind(str(address))
        busy.listen(0)
        first.connect(str(address))
        answers = [answer_to(event(root, *TOOLS[0])) for _ in range(2)]
    assert all(map(says_no, answers))
    address.unlink()


@pytest.fixture
async def session(session: PairingSession) -> PairingSession:
    """A review that is told what was written."""
    await session.review.switch_on(since_commit=True)
    return session


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 300, "b/" * 3000, "run.py/x", ".", "/"])
async def test_a_patch_of_a_path_that_no_system_takes_is_denied(
    session: PairingSession, root: Path, name: str
) -> None:
    for head in ("Update", "Delete"):
        patch = f"*** Begin Patch\n*** {head} File: {name}\n@@\n-x = 1\n+x = 2\n*** End Patch\n"
        call = HookEvent(
            "PreToolUse", "Codex", str(root), "s", "apply_patch", {"command": patch}, False
        )
        assert says_no(await session.gate.answer(call)), head


ADD_EMPTY = "*** Begin Patch\n*** Add File: new.py\n"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "run.py", "content": "x = 1\n"}),
        ("Write", {"file_path": "run.py", "content": "x = 1"}),
        ("Write", {"file_path": "run.py", "content": "x = 1\r\n"}),
        ("Write", {"file_path": "new.py", "content": ""}),
        ("Edit", {"file_path": "new.py", "old_string": "", "new_string": ""}),
        ("Edit", {"file_path": "run.py", "old_string": "x = 1\n", "new_string": "x = 1"}),
        ("apply_patch", {"command": f"{ADD_EMPTY}*** End Patch\n"}),
        ("apply_patch", {"command": PATCH.replace("*** Begin Patch\n", ADD_EMPTY)}),
        ("Write", {"file_path": "~/new.py", "content": "x = 1\n"}),
    ],
)
async def test_an_edit_that_no_hunk_can_show_is_denied(
    session: PairingSession, root: Path, tool: str, given: dict[str, Any]
) -> None:
    call = HookEvent("PreToolUse", "Codex", str(root), "s", tool, given, False)
    assert says_no(await session.gate.answer(call))
    assert session.hunks.undecided() == []


async def test_a_patch_is_no_note_whatever_else_its_call_names(
    session: PairingSession, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    given = {"file_path": str(tmp_path / "codex" / "plan.md"), "command": "no patch"}
    call = HookEvent("PreToolUse", "Codex", str(root), "s", "apply_patch", given, False)
    assert says_no(await session.gate.answer(call))


async def calls_of_the_session(session: PairingSession, root: Path, count: int) -> None:
    rng = random.Random(count)
    for number in range(count):
        line = mutated(rng, root)
        read = HookEvent.read(line)
        if read is None or may_pass(line):
            continue
        answering = asyncio.ensure_future(session.gate.answer(read))
        # It is denied, or held for a decision, which does not come here.
        await asyncio.wait({answering}, timeout=0.02)
        if answering.done():
            assert says_no(answering.result()), (number, line)
        else:
            answering.cancel()
            await asyncio.wait({answering})
    assert (root / "run.py").read_text() == "x = 1\n"


async def test_the_session_holds_or_denies_mutated_calls(
    session: PairingSession, root: Path
) -> None:
    await calls_of_the_session(session, root, 150)


@pytest.mark.system
@pytest.mark.timeout(1800)
async def test_the_session_holds_or_denies_ten_thousand_mutated_calls(
    session: PairingSession, root: Path
) -> None:
    await calls_of_the_session(session, root, 10_000)
