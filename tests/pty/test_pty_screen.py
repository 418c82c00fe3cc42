"""The real program on a real pseudo-terminal, driven by bytes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.bench.terminal import TerminalProgram
from midstream.tui.review.steer import LATE_S
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system

CODE = (
    "def count(items):\n    total = 0\n    for item in items:\n"
    "        total += item\n    return total\n"
)


def eventually(
    condition: Callable[[], bool], program: TerminalProgram, seconds: float = PATIENCE_S
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, program.output[-2000:]
        program.read(0.05)


@pytest.fixture
def program(tmp_path: Path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "things.py").write_text(CODE)
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            [
                # It would take longer than any test waits.
                {"match": "slow", "edit": [["total", "found"]], "rate": 0.1},
                {"match": "", "edit": [["total", "found"]], "rate": 400},
            ]
        )
    )
    command = [sys.executable, "-m", "midstream", "project/things.py", "--replay", str(script)]
    environment = {"MIDSTREAM_STATE_DIR": str(tmp_path / "state"), "NO_COLOR": ""}
    os.environ.pop("NO_COLOR", None)
    with TerminalProgram(
        command, size=(100, 30), environment=environment, folder=tmp_path
    ) as program:
        program.wait_for("ready", PATIENCE_S)
        program.wait_for("def", PATIENCE_S)
        yield program


def test_instruct_accept_and_quit(program: TerminalProgram, tmp_path: Path) -> None:
    program.write("rename total\r")
    program.wait_for("to decide", PATIENCE_S)
    program.settle()
    program.write("AA")
    path = tmp_path / "project" / "things.py"
    eventually(lambda: path.read_text() == CODE.replace("total", "found"), program)
    # Two steps where some hunks had been on screen long enough and others had not.
    program.write("uu")
    eventually(lambda: path.read_text() == CODE, program)
    program.drain(LATE_S)  # Before, it would be the stop of an answer that has just ended.
    program.write("\x03")
    program.wait_for("again quits", PATIENCE_S)
    program.write("\x03")
    assert program.exit_code(PATIENCE_S) == 0
    assert b"\x1b[?1049l" in program.output


def test_alt_enter_without_kitty_keys_queues(program: TerminalProgram) -> None:
    program.write("slow rename\r")
    program.wait_for("writing", PATIENCE_S)
    program.write("ithen that")
    program.wait_for("redirect now", PATIENCE_S)
    program.write("\x1b\r")
    program.wait_for("Queued", PATIENCE_S)
    program.write("\x03")
    program.wait_for("Stopped", PATIENCE_S)


def test_a_stop_shows_before_the_answer_ends(program: TerminalProgram) -> None:
    program.write("slow rename\r")
    program.wait_for("writing", PATIENCE_S)
    since = len(program.output)
    program.write("\x03")
    program.wait_for("Stopped", PATIENCE_S, since=since)


def test_an_answer_goes_on_while_an_editor_has_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor waits until the journal has the end of the answer, which would never come."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "things.py").write_text(CODE)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "edit": [["total", "found"]], "rate": 8}]))
    editor = tmp_path / "editor"
    editor.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('EDITOR BEGINS', flush=True)\n"
        f"go, state = pathlib.Path({str(tmp_path / 'go')!r}), pathlib.Path({str(tmp_path)!r})\n"
        "while not go.exists():\n"
        "    time.sleep(0.02)\n"
        "print('EDITOR ENDS', flush=True)\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('found = 0', 'found = 1'))\n"
    )
    editor.chmod(0o755)
    variables = {"MIDSTREAM_STATE_DIR": str(tmp_path / "state"), "VISUAL": str(editor)}
    command = [sys.executable, "-m", "midstream", "things.py", "--replay", str(script)]
    with TerminalProgram(
        command, size=(100, 30), environment=variables, folder=tmp_path
    ) as program:
        program.wait_for("ready", PATIENCE_S)
        program.wait_for("def", PATIENCE_S)
        program.write("rename total\r")
        program.wait_for("to decide", PATIENCE_S)
        program.write("e")
        program.wait_for("undecided", PATIENCE_S)
        program.write("\x07")
        program.wait_for("EDITOR BEGINS", PATIENCE_S)
        begun = len(program.output)
        program.write("\x03")  # the terminal interrupts both; it is meant for the editor

        def answered() -> bool:
            journals = list((tmp_path / "state").rglob("*.jsonl"))
            return any("return found" in journal.read_text() for journal in journals)

        eventually(answered, program)
        assert b"\x1b[" not in program.output[begun:]
        (tmp_path / "go").touch()
        program.wait_for("EDITOR ENDS", PATIENCE_S)
        back = len(program.output)
        program.wait_for("\x1b[?1049h", PATIENCE_S, since=back)
        program.wait_for("ready", PATIENCE_S, since=back)
        program.settle()
        program.write("\x13")
        program.wait_for("has your text now", PATIENCE_S, since=back)
        program.write("AA")
        wanted = CODE.replace("total", "found").replace("found = 0", "found = 1")
        eventually(lambda: (tmp_path / "things.py").read_text() == wanted, program)


def test_ctrl_z_goes_to_the_shell_and_everything_is_painted_on_return(
    program: TerminalProgram,
) -> None:
    program.write("\x1b")
    program.settle()
    program.write("\x1a")
    eventually(lambda: b"\x1b[?1049l" in program.output, program)
    _, status = os.waitpid(program.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    since = len(program.output)
    os.kill(program.pid, signal.SIGCONT)
    for words in ("ready", "def", "return", "Instruct"):
        program.wait_for(words, 10, since=since)


def test_keys_pressed_before_the_first_frame_act_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "things.py").write_text(CODE)
    script = tmp_path / "script.json"
    script.write_text("[]")
    command = [sys.executable, "-m", "midstream", "things.py", "--replay", str(script)]
    state = {"MIDSTREAM_STATE_DIR": str(tmp_path / "state")}
    with TerminalProgram(command, size=(100, 30), environment=state, folder=tmp_path) as program:
        program.wait_for("\x1b[?1049h", PATIENCE_S)
        program.write("\x1b?")
        program.wait_for("Keys", PATIENCE_S)
        program.wait_for("ready", PATIENCE_S)
        program.settle()
        since = len(program.output)
        program.write("\x1bi")
        program.wait_for("press i to write", PATIENCE_S, since=since)


def test_ctrl_z_goes_back_to_the_shell_and_fg_goes_on(tmp_path: Path) -> None:
    (tmp_path / "things.py").write_text(CODE)
    (tmp_path / "script.json").write_text("[]")
    environment = {"MIDSTREAM_STATE_DIR": str(tmp_path / "state"), "PS1": "$ ", "HISTFILE": ""}
    with TerminalProgram(
        ["bash", "--norc", "--noprofile", "-i"],
        size=(100, 30),
        environment=environment,
        folder=tmp_path,
    ) as shell:
        shell.wait_for("$ ")
        shell.write(f"{sys.executable} -m midstream things.py --replay script.json\r")
        shell.wait_for("ready", PATIENCE_S)
        shell.wait_for("def", PATIENCE_S)
        shell.settle()
        left = len(shell.output)
        shell.write("\x1b")
        shell.settle()
        shell.write("\x1a")
        shell.wait_for("Stopped", PATIENCE_S, since=left)
        assert b"\x1b[?1049l" in shell.output[left:]
        shell.write("echo h''ere\r")
        shell.wait_for("here", since=left)
        back = len(shell.output)
        shell.write("fg\r")
        shell.wait_for(b"\x1b[?1049h", PATIENCE_S, since=back)
        shell.wait_for("total", PATIENCE_S, since=back)
        shell.settle()
        gone = len(shell.output)
        shell.write("\x11")
        shell.wait_for(b"\x1b[?1049l", PATIENCE_S, since=gone)
        shell.write("exit\r")
        assert shell.exit_code(PATIENCE_S) == 0


def test_the_screen_works_when_standard_error_is_redirected(tmp_path: Path) -> None:
    (tmp_path / "things.py").write_text(CODE)
    command = ["sh", "-c", f"exec '{sys.executable}' -m midstream things.py 2> log"]
    environment = {"MIDSTREAM_STATE_DIR": str(tmp_path / "state")}
    with TerminalProgram(
        command, size=(100, 30), environment=environment, folder=tmp_path
    ) as program:
        program.wait_for("ready", PATIENCE_S)
        program.wait_for("def", PATIENCE_S)
    assert (tmp_path / "log").read_text() == ""
