"""``midstream hook``: silent and light without a review; installed only on a yes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.agents import hook_client
from midstream.agents.hooks import merged_hooks, without_hooks
from midstream.commands import hook as hook_command
from midstream.workspace.paths import state_dir

OWN = '{\n    "model": "opus",\n    "hooks": {"Stop": [{"hooks": []}]},\n    "ä": [1, 2]\n}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / "bin" / "midstream"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def hook(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "midstream", "hook", *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=60, check=False
    )


def test_installing_shows_the_change_and_keeps_the_rest(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(OWN)
    refused = hook("--install", "claude", given="n\n")
    assert (refused.returncode, path.read_text()) == (1, OWN)
    assert '"command": "midstream hook"' in refused.stdout
    written = hook("--install", "claude", given="y\n")
    assert written.returncode == 0
    assert "Next: run `midstream review .`" in written.stdout
    settings = json.loads(path.read_text())
    assert settings["model"] == "opus"
    assert settings["ä"] == [1, 2]
    assert settings["hooks"]["Stop"][0] == {"hooks": []}
    (group,) = settings["hooks"]["PreToolUse"]
    assert group["matcher"] == "Edit|MultiEdit|Write|NotebookEdit"
    assert '    "model"' in path.read_text()
    assert path.with_name("settings.json.before-midstream").read_text() == OWN
    before = path.read_text()
    again = hook("--install", "claude")
    assert (again.returncode, path.read_text()) == (0, before)
    assert "already" in again.stdout
    # The hook of an earlier version, for fewer tools, is replaced.
    path.write_text(before.replace("|NotebookEdit", ""))
    assert hook("--install", "claude", given="y\n").returncode == 0
    assert path.read_text() == before


@pytest.mark.parametrize("agent", ["claude", "codex"])
@pytest.mark.parametrize(
    "before",
    [
        {},
        {"model": "opus"},
        {"hooks": {"Stop": [{"hooks": []}]}},
        {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "lint"}]}]}},
    ],
)
def test_removing_restores_what_was_there(agent: str, before: dict[str, object]) -> None:
    merged = merged_hooks(before, agent)
    assert merged != before
    assert without_hooks(merged) == before
    assert without_hooks(before) == before


def test_removing_leaves_the_hooks_of_others_in_the_same_group() -> None:
    own = {"type": "command", "command": "midstream hook", "timeout": 600}
    other = {"type": "command", "command": "lint"}
    both = {"hooks": {"Stop": [{"matcher": "x", "hooks": [own, other]}]}}
    assert without_hooks(both) == {"hooks": {"Stop": [{"matcher": "x", "hooks": [other]}]}}


def test_removing_shows_the_change_and_asks(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    absent = hook("--remove", "claude")
    assert (absent.returncode, path.exists()) == (0, False)
    assert "does not have the hook" in absent.stdout
    path.parent.mkdir()
    path.write_text(OWN)
    assert hook("--install", "claude", given="y\n").returncode == 0
    installed = path.read_text()
    refused = hook("--remove", "claude", given="n\n")
    assert (refused.returncode, path.read_text()) == (1, installed)
    assert '"command": "midstream hook"' in refused.stdout
    assert hook("--remove", "claude", given="y\n").returncode == 0
    assert json.loads(path.read_text()) == json.loads(OWN)
    copy = path.with_name("settings.json.before-midstream")
    assert copy.read_text() == installed


@pytest.mark.parametrize("before", [None, "{}\n"])
@pytest.mark.parametrize("copied", [None, OWN, "{"])
def test_removing_leaves_no_file_without_settings(
    home: Path, before: str | None, copied: str | None
) -> None:
    path = home / ".claude" / "settings.json"
    copy = path.with_name("settings.json.before-midstream")
    path.parent.mkdir()
    if before is not None:
        path.write_text(before)
    assert hook("--install", "claude", given="y\n").returncode == 0
    if copied is not None:  # left by the user or an earlier installation
        copy.write_text(copied)
    refused = hook("--remove", "claude", given="n\n")
    assert (refused.returncode, path.exists()) == (1, True)
    done = " ".join(hook("--remove", "claude", given="y\n").stdout.split())
    assert "Delete the file? [y/N]" in done
    assert "settings.json had nothing else and is gone" in done
    assert not path.exists()
    assert (copy.read_text() if copy.exists() else None) == copied


def test_removing_keeps_a_file_that_a_link_leads_to(home: Path) -> None:
    path, real = home / ".claude" / "settings.json", home / "dotfiles.json"
    path.parent.mkdir()
    real.write_text("{}\n")
    path.symlink_to(real)
    assert hook("--install", "claude", given="y\n").returncode == 0
    assert hook("--remove", "claude", given="y\n").returncode == 0
    assert path.is_symlink()
    assert json.loads(real.read_text()) == {}


def test_an_agent_that_would_not_find_the_program_is_told_its_place(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = home / "my venv" / "bin"
    folder.mkdir(parents=True)
    python = folder / "python"
    program = folder / "midstream"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(python))
    command = f"'{program}' hook"
    assert hook_command._command() == command
    before = {"model": "opus"}
    merged = merged_hooks(before, "claude", command)
    assert merged["hooks"]["Stop"][0]["hooks"][0]["command"] == command
    assert without_hooks(merged) == before
    # The program is on the PATH by now, so its name replaces its path.
    assert merged_hooks(merged, "claude") == merged_hooks(before, "claude")
    program.unlink()
    assert hook_command._command() == "midstream hook"


def test_codex_is_installed_in_its_own_file(home: Path) -> None:
    done = hook("--install", "codex", given="y\n")
    assert done.returncode == 0
    assert "/hooks" in done.stdout
    settings = json.loads((home / ".codex" / "hooks.json").read_text())
    (group,) = settings["hooks"]["PreToolUse"]
    assert group["matcher"] == "apply_patch"
    assert group["hooks"] == [{"type": "command", "command": "midstream hook", "timeout": 600}]


def test_on_a_terminal_it_says_who_runs_it() -> None:
    leader, terminal = os.openpty()
    try:
        command = [sys.executable, "-m", "midstream", "hook"]
        done = subprocess.run(
            command, stdin=terminal, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(leader)
        os.close(terminal)
    assert done.returncode == 2
    assert "`midstream hook --install claude`" in " ".join(done.stderr.split())


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 1}', '{"hooks": {"Stop": 1}}'])
def test_settings_that_are_broken_stay_as_they_are(home: Path, text: str) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(text)
    done = hook("--install", "claude", given="y\n")
    assert done.returncode != 0
    assert done.stderr.startswith("midstream: ")
    assert path.read_text() == text


@pytest.mark.parametrize("left", ["nothing", "folder", "socket", "open to all"])
@pytest.mark.parametrize("kind", ["PreToolUse", "Stop", "other"])
def test_without_a_session_it_is_silent(home: Path, left: str, kind: str) -> None:
    """Also beside what a killed session has left; then the agent works as if it had no hook."""
    folder = Path(hook_client.socket_folder())
    if left != "nothing":
        folder.mkdir(parents=True, mode=0o700)
    if left in ("socket", "open to all"):
        address = folder / f"{hook_client.socket_prefix(os.path.realpath(home))}999999999"
        with socket.socket(socket.AF_UNIX) as unheard:
            unheard.bind(str(address))
    if left == "open to all":
        folder.chmod(0o777)
    call = {"file_path": str(home / "a.py"), "content": "x = 1\n"}
    event = {"hook_event_name": kind, "cwd": str(home), "tool_name": "Write", "tool_input": call}
    done = hook(given=json.dumps(event))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (home / "a.py").exists()


def test_without_a_review_it_imports_next_to_nothing() -> None:
    """It runs before every edit of an agent."""
    program = (
        "import sys; sys.argv = ['midstream', 'hook']\n"
        "from midstream.__main__ import main\n"
        "before = set(sys.modules)\n"
        "main()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    state = {"MIDSTREAM_STATE_DIR", "XDG_STATE_HOME"}
    environ = {name: value for name, value in os.environ.items() if name not in state}
    environ["HOME"] = "/nonexistent"  # The user may be in a review while the tests run.
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        input='{"hook_event_name": "PreToolUse"}',
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    if sys.platform == "linux":
        own = ["__future__", "midstream.agents", "midstream.agents.hook_client"]
        assert done.stdout.split() == own


def test_the_client_looks_where_the_state_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for name, value in (("XDG_STATE_HOME", "/xdg"), ("MIDSTREAM_STATE_DIR", "/ms")):
        monkeypatch.delenv(name, raising=False)
        assert hook_client.socket_folder() == f"{state_dir()}/hooks"
        monkeypatch.setenv(name, value)
        assert hook_client.socket_folder() == f"{state_dir()}/hooks"


def test_a_long_state_folder_has_a_short_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", "/" + "long/" * 30)
    assert len(hook_client.socket_folder()) < 80
