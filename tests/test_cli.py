"""The installed program, run as people and scripts run it."""

from __future__ import annotations

import fcntl
import io
import itertools
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

import midstream
from midstream.cli import BENCHES, COMMANDS
from midstream.commands.common import wrapped
from midstream.commands.doctor import examine
from midstream.resources import default_model
from midstream.tui.keymap import key_troubles
from tests.helpers.processes import started
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system

PROGRAM = Path(sys.executable).parent / "midstream"
CODE = """\
def total(values):
    result = 0
    for v in values:
        result += v
    return result


def untouched():
    return 1
"""


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "sums.py").write_text(CODE)
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    entries = [
        {"match": "rename", "edit": [["result", "amount"]]},
        {"match": "slow", "edit": [["result", "amount"]], "rate": 20},
        {"match": "leave", "edit": []},
        {"match": "empty", "text": ""},
    ]
    path.write_text(json.dumps(entries))
    return path


def midstream_(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )


def events(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_version_and_help() -> None:
    first, second = midstream_("--version").stdout.splitlines()
    assert first == f"midstream {midstream.__version__}"
    model = re.escape(default_model().name)
    assert re.fullmatch(rf".*\b{model}\b.*, onnxruntime [\d.]+, Python [\d.]+", second)
    done = midstream_("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"  {command.name} " in done.stdout


@pytest.mark.parametrize("command", [c.name for c in COMMANDS])
def test_every_command_explains_itself(command: str) -> None:
    done = midstream_(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: midstream {command}")
    assert "``" not in done.stdout


def test_edit_prints_a_patch_that_applies(folder: Path, script: Path) -> None:
    done = midstream_(
        "edit", folder / "sums.py", "-m", "rename result to amount in total", "--replay", script
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "sums.py").read_text() == CODE
    assert "2 hunks, +3 -3" in done.stderr
    assert "not written" in done.stderr
    subprocess.run(
        ["git", "apply", "-p1", "-"], input=done.stdout, text=True, cwd=folder, check=True
    )
    assert (folder / "sums.py").read_text() == CODE.replace("result", "amount")


def test_edit_applies(folder: Path, script: Path) -> None:
    done = midstream_(
        "edit", "sums.py", "-m", "rename result", "--apply", "--replay", script, cwd=folder
    )
    assert done.returncode == 2, "there are two functions, and the instruction names neither"
    assert (folder / "sums.py").read_text() == CODE
    done = midstream_(
        "edit", "sums.py:1-5", "-m", "rename result", "--apply", "--replay", script, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "sums.py").read_text() == CODE.replace("result", "amount")


def test_edit_as_json_events(folder: Path, script: Path) -> None:
    done = midstream_(
        "edit", folder / "sums.py:2", "-m", "rename result", "--json", "--replay", script
    )
    assert done.returncode == 0
    assert done.stderr == ""
    told = events(done.stdout)
    assert told[0] == {
        "event": "started",
        "path": "sums.py",
        "first_line": 1,
        "last_line": 5,
        "symbol": "total",
        "why": "at the cursor",
        "model": "replay",
    }
    text = "".join(event["text"] for event in told if event["event"] == "text")
    assert text == CODE[: CODE.index("\n\n") + 1].replace("result", "amount")
    hunks = [event for event in told if event["event"] == "hunk"]
    assert [(h["first_line"], h["last_line"]) for h in hunks] == [(2, 2), (4, 5)]
    assert told[-1]["event"] == "finished"
    assert (told[-1]["hunks"], told[-1]["written"]) == (2, False)


def test_edit_finds_the_file_in_a_folder(folder: Path, script: Path) -> None:
    done = midstream_(
        "edit", folder, "-m", "rename result to amount in total", "--json", "--replay", script
    )
    assert events(done.stdout)[0]["path"] == "sums.py"


def test_edit_writes_what_comes_before_the_end(folder: Path, script: Path) -> None:
    """The first JSON events are there while the model still writes."""
    with started(
        [PROGRAM, "edit", folder / "sums.py:1-5", "-m", "slow", "--json", "--replay", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        first = json.loads(program.stdout.readline())
        second = json.loads(program.stdout.readline())
        assert (first["event"], second["event"]) == ("started", "text")
        assert program.poll() is None
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE_S) == 130
        assert program.stderr.read() == "midstream: stopped.\n"
    assert (folder / "sums.py").read_text() == CODE


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["edit", "gone.py", "-m", "x"], 2, "There is no file gone.py"),
        (["edit", "sums.py:9-3", "-m", "x"], 2, "has no valid lines"),
        (["edit", "sums.py:50-60", "-m", "x"], 2, "Lines 50-60 are not in sums.py, which has 9"),
        (["edit", "sums.py", "-m", "add a docstring to `totl`"], 2, "nearest: `total`"),
        (["edit", "sums.py", "-m", "make it faster"], 2, "Which part of sums.py"),
        (["edit", "sums.py"], 2, "-m/--message"),
        (["edit", "nul.py:1", "-m", "x"], 1, "nul.py is not a text file (it has a NUL byte"),
        (["edit", "sums.py:1", "-m", "x", "--model", "no/model"], 3, "no model folder at no/model"),
        (["edit", "sums.py:1", "-m", "x", "--endpoint", "nonsense"], 2, 'no endpoint "nonsense"'),
        (["edit", "sums.py:1", "-m", "x", "--replay", "no.json"], 3, "no.json cannot be read"),
        (["edit", "sums.py:1", "-m", "leave it"], 1, " left "),
        (["edit", "sums.py:1", "-m", "empty"], 1, "returned no code for `total` of sums.py"),
        (["edit", "empty", "-m", "rename x to y in f"], 2, "There is no code in"),
        (["serve", "--host", "0.0.0.0"], 2, "needs a token"),
        (["serve", "--token-file", "gone"], 2, "token file gone cannot be read"),
        (["serve", "--replicas", "3"], 2, "add --ray"),
        (["bench", "edits", "--repo", "gone"], 2, "gone has no git history"),
        (["bench", "guard", "--files", "0"], 2, "--files must be 10 or more"),
        (["models", "info", "nowhere"], 3, "There is no model folder at nowhere"),
        (["models", "frob"], 2, "'frob'"),
        (["bench", "speed"], 2, "'speed'"),
        (["bench", "engine", "--fast"], 2, "Unrecognized arguments: --fast"),
        (["bench", "tui", "--fast"], 2, "Unrecognized arguments: --fast"),
        (["bench", "edits", "--pairs", "many"], 2, "invalid int value: 'many'"),
        (["bench", "wire", "--clients", "0"], 2, "'0' is not a whole number of at least 1"),
        (["wafer", "frob"], 2, "'frob'"),
        (["guard", "gone.py"], 2, "gone.py cannot be read"),
        (["edti"], 2, 'did you mean "midstream edit"?'),
        (["--frob"], 2, "--frob"),
        (["."], 2, "The screen needs a terminal"),
        (["--resume"], 2, "There is no session of"),
        (["agent", "cat", "--resume"], 2, "There is no session of cat in"),
        (["agent", "cat -u", "--resume"], 2, "start one with `midstream agent 'cat -u'`."),
        (["demo"], 2, "The screen needs a terminal"),
    ],
)
def test_mistakes_are_one_sentence(
    folder: Path, script: Path, arguments: list[str], code: int, sentence: str
) -> None:
    (folder / "nul.py").write_bytes(b"a\x00\n")
    (folder / "empty").mkdir()
    if arguments[0] == "edit" and "--replay" not in arguments and "--model" not in arguments:
        arguments = [*arguments, "--replay", str(script)]
    done = midstream_(*arguments, cwd=folder)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith(("midstream: ", "midstream wafer: "))
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert (folder / "sums.py").read_text() == CODE


def test_a_read_only_file_is_left_alone(folder: Path, script: Path) -> None:
    (folder / "sums.py").chmod(0o444)
    arguments = ["edit", folder / "sums.py:1-5", "-m", "rename", "--replay", script]
    done = midstream_(*arguments, "--apply")
    assert done.returncode == 1
    assert done.stderr == (
        "midstream: sums.py is read-only; make it writable (chmod u+w) and try again.\n"
    )
    assert (folder / "sums.py").read_text() == CODE
    assert midstream_(*arguments).returncode == 0, "a patch can still be made"


def test_what_a_model_said_is_printed_without_control_characters(
    folder: Path, tmp_path: Path
) -> None:
    script = tmp_path / "refusal.json"
    script.write_text(json.dumps([{"text": "I am sorry,\x07 I cannot help with that."}]))
    done = midstream_("edit", folder / "sums.py:1-5", "-m", "x", "--replay", script)
    assert done.returncode == 1
    assert 'but said: "I am sorry,\\x07 I cannot help with that."' in done.stderr
    assert "\x07" not in done.stderr


def test_mistakes_as_json(folder: Path) -> None:
    done = midstream_("edit", folder / "sums.py", "-m", "docstring for `totl`", "--json")
    assert done.returncode == 2
    assert done.stderr == ""
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["candidates"]) == ("target-unclear", ["total"])


def test_settings_are_read_and_their_mistakes_told(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "config.toml").write_text('[model]\nfoldr = "x"\n')
    done = midstream_("edit", folder / "sums.py:1", "-m", "x")
    assert done.returncode == 2
    assert 'did you mean "model.folder"?' in done.stderr


def test_a_token_goes_nowhere_but_to_its_endpoint(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[endpoint]\nurl = "wss://api.openai.com/v1"\nmodel = "m"\ntoken_env = "NO_SUCH_TOKEN"\n'
    )
    done = midstream_("edit", folder / "sums.py:1", "-m", "x")
    assert done.returncode == 2
    assert "NO_SUCH_TOKEN is not set" in done.stderr
    done = midstream_("edit", folder / "sums.py:1", "-m", "x", "--endpoint", "ws://127.0.0.1:9/v1")
    assert done.returncode == 3, "another endpoint is asked without that token"


def test_serve_and_edit_against_it(folder: Path, script: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-secret\n")
    command = [PROGRAM, "serve", "--port", "0", "--replay", script, "--token-file", token, "--json"]
    with started(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        assert told["event"] == "listening"
        arguments = ["edit", folder / "sums.py:1-5", "-m", "rename", "--endpoint", told["url"]]
        refused = midstream_(*arguments)
        assert refused.returncode == 3
        os.environ["MIDSTREAM_ENDPOINT_TOKEN_ENV"] = "TEST_TOKEN"
        os.environ["TEST_TOKEN"] = "a-secret"
        try:
            done = midstream_(*arguments, "--apply")
        finally:
            del os.environ["MIDSTREAM_ENDPOINT_TOKEN_ENV"], os.environ["TEST_TOKEN"]
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_S) in (0, 130)
    assert done.returncode == 0, done.stderr
    assert (folder / "sums.py").read_text() == CODE.replace("result", "amount")


REPLY = """\
sums.py
<<<<<<< SEARCH
    return 1
=======
    return 2
>>>>>>> REPLACE
"""


def apply(folder: Path, reply: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), "apply", *arguments],
        input=reply,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=folder,
    )


def test_apply_writes_new_files_as_those_beside_them(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "a.cs").write_bytes(b"\xef\xbb\xbfusing A;\r\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / ".gitattributes").write_text("*.bat text eol=crlf\n")
    for path in ("src/b.cs", "run.bat", "new.txt"):
        done = apply(folder, f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,2 @@\n+one\n+two\n")
        assert done.returncode == 0, done.stderr
    assert (folder / "src" / "b.cs").read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n"
    assert (folder / "run.bat").read_bytes() == b"one\r\ntwo\r\n"
    assert (folder / "new.txt").read_bytes() == b"one\ntwo\n"


def test_a_dry_run_of_apply_fails_where_the_run_would(folder: Path) -> None:
    reply = "--- /dev/null\n+++ b/sums.py/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    dry, done = apply(folder, reply, "--dry-run"), apply(folder, reply)
    assert (dry.returncode, dry.stderr) == (done.returncode, done.stderr)
    assert dry.returncode
    assert "sums.py is no folder" in dry.stderr
    reply = (
        "diff --git a/n.sh b/n.sh\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/n.sh\n@@ -0,0 +1 @@\n+ls\n"
    )
    assert "executable" not in apply(folder, reply, "--dry-run").stdout


def test_apply_lists_the_uses_that_it_leaves_behind(folder: Path) -> None:
    (folder / "use.py").write_text("import sums\n\nprint(sums.total([1]))\n")
    reply = (
        "sums.py\n<<<<<<< SEARCH\ndef total(values):\n=======\ndef summed(values):\n"
        ">>>>>>> REPLACE\n"
    )
    done = apply(folder, reply, "--dry-run", "--json")
    assert json.loads(done.stdout)["left"] == "`total` is still used in use.py:3."
    done = apply(folder, reply)
    assert done.returncode == 0, done.stdout
    assert "`total` is still used in use.py:3.\n" in done.stdout
    assert "def summed(values):" in (folder / "sums.py").read_text()


def test_apply_writes_what_matches(folder: Path) -> None:
    done = apply(folder, REPLY, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["changed"], outcome["written"]) == (["sums.py"], False)
    assert (folder / "sums.py").read_text() == CODE
    done = apply(folder, REPLY)
    assert done.returncode == 0
    assert done.stdout == "All edits were applied.\nsums.py: written\n"
    assert (folder / "sums.py").read_text() == CODE.replace("return 1", "return 2")


def test_apply_writes_no_file_that_stops_parsing(folder: Path) -> None:
    reply = REPLY.replace("return 2", "return (2")
    done = apply(folder, reply)
    assert done.returncode == 1
    assert "sums.py would no longer parse (line " in done.stdout
    assert (folder / "sums.py").read_text() == CODE
    assert "sums.py" in json.loads(apply(folder, reply, "--json").stdout)["broken"]
    assert apply(folder, reply, "--anyway").returncode == 0
    assert "return (2" in (folder / "sums.py").read_text()


def test_edit_writes_no_file_that_stops_parsing(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "broken.json"
    script.write_text(json.dumps([{"match": "", "edit": [["return", "return ("]]}]))
    arguments = ["edit", folder / "sums.py:1-5", "-m", "break it", "--apply", "--replay", script]
    done = midstream_(*arguments)
    assert done.returncode == 1
    assert "not written: sums.py would no longer parse (line " in done.stderr
    assert "--anyway writes it" in done.stderr
    assert (folder / "sums.py").read_text() == CODE
    assert midstream_(*arguments, "--anyway").returncode == 0
    assert "return (" in (folder / "sums.py").read_text()


def test_a_flagged_answer_is_no_success(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "gone.json"
    script.write_text(json.dumps([{"match": "", "edit": [["def total", "def summed"]]}]))
    arguments = ["edit", folder / "sums.py:1-5", "-m", "make it faster", "--replay", script]
    done = midstream_(*arguments, "--diff")
    assert done.returncode == 1
    assert "+def summed" in done.stdout
    assert "no longer defines `total`" in done.stderr
    assert midstream_(*arguments, "--diff", "--unsure").returncode == 0
    assert midstream_(*arguments, "--apply").returncode == 1
    assert (folder / "sums.py").read_text() == CODE
    assert midstream_(*arguments, "--apply", "--unsure").returncode == 0
    assert "def summed" in (folder / "sums.py").read_text()


def test_apply_says_what_does_not_match(folder: Path) -> None:
    done = apply(folder, REPLY.replace("return 1", "return 7"))
    assert done.returncode == 1
    assert "sums.py" in done.stdout
    assert (folder / "sums.py").read_text() == CODE
    done = apply(folder, REPLY.replace("sums.py", "../sums.py"))
    assert done.returncode in (1, 2)
    assert not (folder.parent / "sums.py").exists()
    assert apply(folder, REPLY, "--format", "morse").returncode == 2


MODE = """diff --git a/sums.py b/sums.py
old mode 100644
new mode 100755
diff --git a/run.sh b/run.sh
new file mode 100755
index 0000000..e69de29
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+exit 0
"""


def test_apply_takes_the_modes_of_a_diff(folder: Path) -> None:
    done = apply(folder, MODE, "--dry-run")
    assert (done.returncode, done.stdout) == (
        0,
        "All edits would apply.\nrun.sh: would be written and made executable\n"
        "sums.py: would be made executable\n",
    )
    assert not (folder / "run.sh").exists()
    assert apply(folder, MODE).returncode == 0
    assert (folder / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (folder / "sums.py").stat().st_mode & 0o111
    assert (folder / "sums.py").read_text() == CODE
    back = MODE.split("diff --git a/run")[0].replace("100755", "100644")
    assert apply(folder, back).returncode == 0
    assert not (folder / "sums.py").stat().st_mode & 0o111


@pytest.mark.parametrize("what", BENCHES)
def test_every_benchmark_explains_itself(what: str) -> None:
    done = midstream_("bench", what, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: midstream bench {what}")
    assert "``" not in done.stdout


def test_doctor_names_a_theme_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('theme = "nosuch"\n')
    found = next(f for f in examine(folder, key_troubles) if f.name == "theme")
    assert not found.ok
    assert not found.needed
    assert 'no theme "nosuch"' in found.detail


def test_doctor_names_own_keys_that_clash_are_lost_or_unknown(folder: Path, tmp_path: Path) -> None:
    def told() -> list[tuple[bool, str]]:
        findings = itertools.takewhile(
            lambda f: f.name in ("python", "settings", "keys"), examine(folder, key_troubles)
        )
        return [(finding.ok, finding.detail) for finding in findings if finding.name == "keys"]

    assert told() == [(True, "default")]
    bind = '"hunk.reject" = "u"\n"copy" = "Y"\n"wrap" = "Y"\n"hunk.acept" = "y"\n'
    (tmp_path / "config.toml").write_text(f"[keys.bind]\n{bind}")
    unknown, lost, clash = told()
    assert not any(ok for ok, _ in (unknown, lost, clash))
    assert 'did you mean "hunk.accept"?' in unknown[1]
    assert '"decision.undo" has none' in lost[1]
    assert 'The key Y is claimed by "copy" and "wrap"' in clash[1]
    (tmp_path / "config.toml").write_text('[keys]\npreset = "vim"\n[keys.bind]\n"wrap" = "Q"\n')
    assert told() == [(True, "vim, 1 action with your own keys")]


def test_doctor_leaves_a_wrong_endpoint_out_and_asks_the_other(
    folder: Path, tmp_path: Path
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    (tmp_path / "config.toml").write_text(
        f'[endpoint]\nurl = "http://127.0.0.1:{port}/v1"\ntransport = "sse"\n'
        '[endpoints.typo]\nurl = "https://b.example/v1"\nmodle = "m"\n'
    )
    found = list(examine(folder, key_troubles))
    (typo,) = [one for one in found if "left out" in one.detail]
    assert 'endpoints.typo: there is no setting "modle"' in typo.detail
    assert not typo.needed
    (endpoint,) = [one for one in found if one.name == "endpoint"]
    assert not endpoint.ok, "over HTTP too it has to answer"
    assert "127.0.0.1 cannot be reached" in endpoint.detail


@pytest.mark.usefixtures("built_in")
def test_doctor_tells_what_was_tried(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[keys.bind]\n"hunk.reject" = "u"\n')
    done = midstream_("doctor", "--json", cwd=folder)
    found = {finding["name"]: finding for finding in events(done.stdout)}
    assert '"decision.undo" has none' in found["keys"]["detail"]
    assert {"python", "settings", "terminal", "git", "state", "watching", "model"} <= set(found)
    assert found["state"]["ok"]
    assert done.returncode == (0 if all(f["ok"] or not f["needed"] for f in found.values()) else 1)


def test_colours_and_control_characters_on_a_terminal(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "evil.json"
    script.write_text(json.dumps([{"edit": [["return 1", "return '\x1b]0;evil\x07'"]]}]))
    main, sub = pty.openpty()
    arguments = ["edit", "sums.py:8-9", "-m", "x", "--replay", str(script)]
    with started([PROGRAM, *arguments], stdout=sub, cwd=folder) as program:
        os.close(sub)
        shown = read_all(main)
        assert program.wait(PATIENCE_S) == 0
    assert b"\x1b[32m+    return '\\x1b]0;evil\\x07'\x1b[0m" in shown
    assert b"\x1b]0" not in shown


def read_all(descriptor: int, *, until: bytes | None = None, keep: bool = False) -> bytes:
    """The output of a terminal, to its end or until it contains something."""
    data = b""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if select.select([descriptor], [], [], 1.0)[0]:
            try:
                part = os.read(descriptor, 65536)
            except OSError:
                break
            if not part:
                break
            data += part
            if until is not None and until in data:
                break
    if not keep:
        os.close(descriptor)
    return data


@pytest.mark.parametrize("arguments", [["."], ["sums.py", "--ascii"], ["demo"]])
def test_the_screen_opens_and_leaves(folder: Path, script: Path, arguments: list[str]) -> None:
    scratch = folder.parent / "scratch"
    scratch.mkdir()
    main, sub = pty.openpty()
    fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "TMPDIR": str(scratch)}
    with started(
        [PROGRAM, *arguments, "--replay", script],
        stdin=sub,
        stdout=sub,
        stderr=sub,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as program:
        os.close(sub)
        opened = read_all(main, until=b"ready", keep=True)
        assert b"ready" in opened, opened[-2000:]
        os.write(main, b"\x11")
        shown = read_all(main)
        assert program.wait(PATIENCE_S) == 0
    assert b"midstream-" not in shown
    assert not [*scratch.glob("midstream-*/tally")], "the example project is removed"
    assert opened.isascii() == ("--ascii" in arguments)


def test_the_screen_is_served_to_a_browser(folder: Path, script: Path) -> None:
    """As ``textual serve`` runs it: no terminal, packets on both streams."""
    driver = "textual.drivers.web_driver:WebDriver"
    environment = {**os.environ, "TEXTUAL_DRIVER": driver, "COLUMNS": "100", "ROWS": "30"}
    with started(
        [PROGRAM, ".", "--replay", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=environment,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        shown = read_all(program.stdout.fileno(), until=b"ready", keep=True)
        assert b"__GANGLION__" in shown
        assert b"ready" in shown, shown[-2000:]
        program.stdin.write(b"D" + struct.pack(">I", 1) + b"\x11")
        program.stdin.flush()
        read_all(program.stdout.fileno(), keep=True)
        assert program.wait(PATIENCE_S) == 0


def test_reading_only_the_start_is_no_crash(folder: Path, script: Path) -> None:
    command = f"{PROGRAM} edit sums.py:1-5 -m rename --json --replay {script} | head -1"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S
    )
    assert json.loads(done.stdout)["event"] == "started"
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_under_the_output_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(PROGRAM), "wafer", "profile", "llama3.1-8b"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 1
    assert done.stderr == (
        "midstream: Standard output cannot be written: No space left on device; "
        "redirect it elsewhere.\n"
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [("apply <&-", 1), ("guard - <&-", 0), ("models >&-", 0), ("models 2>&-", 0)],
)
def test_closed_standard_streams_are_no_crash(folder: Path, command: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{PROGRAM} {command}"],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


@pytest.mark.parametrize("command", ["edit", "apply", "serve", "models", "guard", "wafer"])
def test_errors_as_json_have_one_shape(folder: Path, command: str) -> None:
    done = midstream_(command, "--frob", "--json", cwd=folder)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"].keys() >= {"code", "message"}


def test_python_m_runs_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "midstream", "--version"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.startswith("midstream ")


def test_nothing_is_kept_for_anybody_elses_telemetry(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command = ["edit", "sums.py", "-m", "rename `result` to `amount` in total"]
    bare = {k: v for k, v in os.environ.items() if k not in ("HOME", "ORT_DISABLE_TELEMETRY")}
    done = subprocess.run(
        [str(PROGRAM), *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=folder,
        env={key: v for key, v in bare.items() if not key.startswith("XDG_")} | {"HOME": str(home)},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert "amount" in done.stdout
    assert not [str(path) for path in home.rglob("*") if "onnx" in path.name]


@pytest.mark.parametrize("module", ["watchfiles", "textual", "argparse", "json"])
def test_a_module_of_the_project_never_runs_in_place_of_a_library(
    folder: Path, module: str
) -> None:
    (folder / f"{module}.py").write_text("open('ran', 'w').close()\n")
    done = subprocess.run(
        [sys.executable, "-m", "midstream", "edit", "--help"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=folder,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "ran").exists()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_sentences_break_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    said = "2 hunks undecided in /a/long/name-of-a-folder.py; they stay."
    assert wrapped(said, Terminal()).split("\n") == [
        "2 hunks undecided in",
        "/a/long/name-of-a-folder.py;",
        "they stay.",
    ]
    assert wrapped(said, io.StringIO()) == said
    command = "`midstream '/a folder/of two words' --resume`"
    assert wrapped(f"Go on later with {command}.", Terminal()).split("\n") == [
        "Go on later with",
        f"{command}.",
    ]


def test_json_keeps_a_name_that_is_not_utf_8(folder: Path) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    words = [str(PROGRAM), "edit", b"no\xef.py", "-m", "x", "--json"]
    done = subprocess.run(words, capture_output=True, cwd=folder, env=environ, check=False)
    assert (done.returncode, done.stderr) == (2, b"")
    assert "no\udcef.py" in json.loads(done.stdout)["error"]["message"]


def test_edit_passes_no_control_character_of_a_name_on(folder: Path, script: Path) -> None:
    (folder / "\x1b[31msums.py").write_text(CODE)
    edit = "edit", "\x1b[31msums.py:1-5", "-m", "rename result", "--apply", "--replay", script
    done = midstream_(*edit, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(r"\x1b[31msums.py: 2 hunks")
