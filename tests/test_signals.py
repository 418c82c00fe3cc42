"""Signals, Ctrl+C and Ctrl+Q end the program, also as the first process of a container."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest

from midstream.agents import hook_client
from midstream.bench.terminal import TerminalProgram
from tests.helpers.folders import write_folder

pytestmark = [pytest.mark.system, pytest.mark.skipif(sys.platform != "linux", reason="Linux")]

FIRST = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Runs a command as the first process of a namespace."""
CODE = "def count(items):\n    total = 0\n    return total\n"
DEAF = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        say(id=asked["id"], result={"protocolVersion": 1, "agentInfo": {"name": "deaf"}})
    elif asked["method"] == "session/new":
        say(id=asked["id"], result={"sessionId": "s"})
    elif asked["method"] == "session/prompt":
        break
for number in range(2000):
    call = {"toolCallId": f"t{number}", "title": f"use{number}"}
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    asked = {"sessionId": "s", "toolCall": call, "options": options}
    say(id=number, method="session/request_permission", params=asked)
number = 0
while True:
    number += 1
    update = {"sessionUpdate": "tool_call", "toolCallId": f"u{number}", "title": "x" * 2000}
    say(method="session/update", params={"sessionId": "s", "update": update})
"""
"""An agent that asks, floods, and does not want to end."""


def write_project(folder: Path) -> Path:
    project = folder / "project"
    if not project.exists():
        project.mkdir()
        (project / "things.py").write_text(CODE)
    return project


def write_endless_hook(folder: Path) -> Path:
    """Give the project a hook that does not end; returns the file that it makes."""
    project, begun = write_project(folder), folder / "begun"
    subprocess.run(["git", "-C", str(project), "init", "-q"], check=True)
    for setting in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(project), "config", setting, "x"], check=True)
    subprocess.run(["git", "-C", str(project), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(project), "commit", "-qm", "First"], check=True)
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(begun))}\nsleep 600\n")
    hook.chmod(0o755)
    return begun


def runs_in_a_hook(begun: Path) -> bool:
    """Whether the hook of ``write_endless_hook`` or what it started is still there."""
    hook = os.fsencode(begun.parent)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if hook in os.fsencode((folder / "cwd").readlink()):
                return True
    return False


def wait_for_file(running: TerminalProgram, path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        running.drain(0.1)


def program(
    folder: Path, *arguments: str, first: bool = False, **environment: str
) -> TerminalProgram:
    write_project(folder)
    before = FIRST if first else ()
    return TerminalProgram(
        [*before, sys.executable, "-m", "midstream", *arguments, str(folder / "project")],
        size=(100, 30),
        environment={"MIDSTREAM_STATE_DIR": str(folder / "state"), **environment},
    )


def process_of(started: int, *, first: bool) -> int:
    """The program itself, which ``unshare`` waits for."""
    if not first:
        return started
    children = Path(f"/proc/{started}/task/{started}/children")
    return int(children.read_text().split()[0])


def can_be_first() -> bool:
    try:
        return subprocess.run([*FIRST, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(params=[False, True], ids=["a process", "the first process"])
def first(request: pytest.FixtureRequest) -> bool:
    if request.param and not can_be_first():
        pytest.skip("namespaces are not allowed here")
    return request.param


@pytest.mark.parametrize("how", [(), ("--plain",), ("review", "--plain")], ids=" ".join)
def test_sigterm_ends_it_and_leaves_the_terminal(
    tmp_path: Path, how: tuple[str, ...], first: bool
) -> None:
    with program(tmp_path, *how, first=first) as running:
        running.wait_for(b"help lists the words" if how else b"\x1b[?1049h", 60)
        running.settle(1.0)
        os.kill(process_of(running.pid, first=first), signal.SIGTERM)
        assert running.exit_code(60) == 128 + signal.SIGTERM
        assert how or b"\x1b[?1049l" in running.output


def test_sigterm_ends_a_command_that_waits_for_its_input(first: bool) -> None:
    command = [*(FIRST if first else ()), sys.executable, "-m", "midstream", "mcp"]
    with TerminalProgram(command) as running:
        running.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\r')
        running.wait_for(b'"result"', 60)
        os.kill(process_of(running.pid, first=first), signal.SIGTERM)
        assert running.exit_code(60) in (128 + signal.SIGTERM, -signal.SIGTERM)


def test_ctrl_c_while_it_is_imported_ends_it_with_a_sentence() -> None:
    program = (
        "import os, signal, sys; from midstream.__main__ import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'midstream.cli': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "midstream: stopped.\n")


def test_sigterm_ends_a_hook_that_waits_for_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path))
    sockets = Path(hook_client.socket_folder())
    sockets.mkdir(mode=0o700)
    command = [*(FIRST if first else ()), sys.executable, "-m", "midstream", "hook"]
    with socket.socket(socket.AF_UNIX) as session:
        session.bind(f"{sockets}/{hook_client.socket_prefix(str(Path.cwd()))}1")
        session.listen()
        session.settimeout(60)
        with subprocess.Popen(command, stdin=subprocess.PIPE) as running:
            assert running.stdin is not None
            running.stdin.write(b"{}")
            running.stdin.close()
            with session.accept()[0]:
                os.kill(process_of(running.pid, first=first), signal.SIGTERM)
                assert running.wait(60) in (128 + signal.SIGTERM, -signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_check_of_a_model_that_computes_without_end(
    tmp_path: Path, number: int
) -> None:
    write_folder(tmp_path, prompt="chat")
    file = str(tmp_path / "model.onnx")
    model = onnx.load(file)
    add_endless_loop(model)
    onnx.save(model, file)
    command = [sys.executable, "-m", "midstream", "models", "check", str(tmp_path)]
    with TerminalProgram(command) as running:
        running.wait_for(b"prompt", 60)
        running.settle(1.0)
        os.kill(running.pid, number)
        assert running.exit_code(60) in (128 + number, -number)


def add_endless_loop(model: onnx.ModelProto) -> None:
    """Have a graph count to a number that is never reached."""
    scalar = partial(onnx.helper.make_tensor_value_info, shape=[])
    number, flag = onnx.TensorProto.INT64, onnx.TensorProto.BOOL
    body = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Identity", ["goes"], ["goes_on"]),
            onnx.helper.make_node("Identity", ["round"], ["seen"]),
        ],
        "body",
        [scalar("round", number), scalar("goes", flag)],
        [scalar("goes_on", flag), scalar("seen", number)],
    )
    rounds = onnx.numpy_helper.from_array(np.array(2**62, np.int64), "rounds")
    goes = onnx.numpy_helper.from_array(np.array(True), "always")
    model.graph.initializer.extend([rounds, goes])
    model.graph.node.append(
        onnx.helper.make_node("Loop", ["rounds", "always"], ["endless"], body=body)
    )
    model.graph.output.append(onnx.helper.make_tensor_value_info("endless", number, None))


def test_ctrl_c_twice_ends_plain_mode(tmp_path: Path, first: bool) -> None:
    with program(tmp_path, "--plain", first=first) as running:
        running.wait_for(b"> ", 60)
        running.write(b"\x03")
        running.wait_for(b"Ctrl+C again", 60)
        running.write(b"\x03")
        assert running.exit_code(60) == 0


def test_ctrl_c_leaves_plain_mode_during_a_hook_that_does_not_end(tmp_path: Path) -> None:
    begun = write_endless_hook(tmp_path)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "edit": [["total", "found"]]}]))
    with program(tmp_path, "--plain", "--replay", str(script)) as running:
        running.wait_for(b"> ", 60)
        running.write("rename total in count\r")
        running.wait_for(b"found = 0", 60)
        running.settle(1.0)
        running.write("accept all\r")
        running.wait_for(b"is written", 60)
        running.write('commit "Second"\r')
        wait_for_file(running, begun)
        running.write(b"\x03")
        running.wait_for(b"The commit was stopped: nothing is committed", 60)
        for _ in range(2):
            running.write(b"\x03")
            running.drain(0.3)
        assert running.exit_code(60) is not None
    assert not runs_in_a_hook(begun)


@contextlib.contextmanager
def committing(tmp_path: Path) -> Iterator[TerminalProgram]:
    """A review that commits, and waits for a hook that does not end; nothing of it is left."""
    begun = write_endless_hook(tmp_path)
    (write_project(tmp_path) / "things.py").write_text(CODE.replace("total", "found"))
    with program(tmp_path, "review") as running:
        running.wait_for(b"to decide", 60)
        for keys in ("a", "C", "Second", "\x1b", "a", "C"):
            running.settle(1.0)
            running.write(keys)
        wait_for_file(running, begun)
        assert begun.exists()
        yield running
    assert not runs_in_a_hook(begun)
    assert not list((tmp_path / "project" / ".git").glob("*.lock"))


@pytest.fixture
def hangup_is_heard() -> Iterator[None]:
    """SIGHUP as a terminal leaves it: under ``nohup``, tests and their children ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup_is_heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_commit_stops_git_and_its_hooks(
    tmp_path: Path, number: signal.Signals
) -> None:
    with committing(tmp_path) as running:
        os.kill(running.pid, number)
        assert running.exit_code(60) == 128 + number
        assert running.output.rfind(b"\x1b[?1049l") > running.output.rfind(b"\x1b[?1049h")
    log = ["git", "-C", str(tmp_path / "project"), "log", "--format=%s"]
    assert subprocess.check_output(log, text=True) == "First\n"


def test_a_terminal_that_goes_away_ends_git_its_hooks_and_the_program(tmp_path: Path) -> None:
    with committing(tmp_path) as running:
        os.close(running.master)
        _, status = os.waitpid(running.pid, 0)
        running.pid, running.master = 0, os.open(os.devnull, os.O_RDONLY)
    assert os.waitstatus_to_exitcode(status) > 0


@pytest.mark.parametrize("how", [(), ("--plain",)], ids=["screen", "plain"])
def test_a_signal_ends_the_project_check_and_what_it_has_started(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    begun = write_endless_hook(tmp_path)
    (write_project(tmp_path) / "things.py").write_text(CODE.replace("total", "found"))
    checks, config = tmp_path / "checks", tmp_path / "config.toml"
    checks.write_text(f"#!/bin/sh\nsleep 605 &\ntouch {begun}\nsleep 605\n")
    checks.chmod(0o755)
    config.write_text(f'check_command = "{checks}"\n')
    with program(tmp_path, "review", *how, MIDSTREAM_CONFIG=str(config)) as running:
        running.wait_for(b"> " if how else b"to decide", 60)
        running.settle(1.0)
        running.write("check\r" if how else "\x12")
        wait_for_file(running, begun)
        assert begun.exists()
        os.kill(running.pid, signal.SIGTERM)
        assert running.exit_code(60) == 128 + signal.SIGTERM
    assert not runs_in_a_hook(begun)


@pytest.mark.parametrize("whole_group", [False, True])
def test_sigterm_while_an_editor_has_the_terminal_leaves_it_as_it_was(
    tmp_path: Path, whole_group: bool
) -> None:
    write_endless_hook(tmp_path)
    (write_project(tmp_path) / "things.py").write_text(CODE.replace("total", "found"))
    editor, begun = tmp_path / "editor", tmp_path / "begun"
    editor.write_text(
        f"#!/bin/sh\necho $$ > {begun}.part; mv {begun}.part {begun}\nexec sleep 600\n"
    )
    editor.chmod(0o755)
    with program(tmp_path, "review", VISUAL=str(editor)) as running:
        running.wait_for(b"to decide", 60)
        for keys in ("a", "C", "\x1b", "a", "i", "Second", "\x07"):
            running.settle(1.0)
            running.write(keys)
        wait_for_file(running, begun)
        (os.killpg if whole_group else os.kill)(running.pid, signal.SIGTERM)
        assert running.exit_code(60) == 128 + signal.SIGTERM
        assert running.output.rfind(b"\x1b[?1049l") > running.output.rfind(b"\x1b[?1049h")
    assert not Path(f"/proc/{begun.read_text().strip()}").exists()


def test_ctrl_q_leaves_the_screen_during_a_hook_that_does_not_end(tmp_path: Path) -> None:
    with committing(tmp_path) as running:
        running.write(b"\x11")
        running.wait_for(b"Quitting once git and its hooks are done", 60)
        running.write(b"\x11")
        assert running.exit_code(60) == 0
        assert b"\x1b[?1049l" in running.output
        assert b"stopped before it was made" in running.output


def test_ctrl_q_ends_an_agent_that_asks_floods_and_stays(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(DEAF)
    agent = shlex.join([sys.executable, str(tmp_path / "agent.py")])
    with program(tmp_path, "agent", agent) as running:
        running.wait_for(b"deaf", 60)
        running.write("igo\r")
        running.wait_for(b"use", 60)
        running.drain(1.0)
        running.write(b"\x11")
        running.wait_for(b"waits for your answer", 60)
        running.write(b"\x11")
        assert running.exit_code(60) == 0
