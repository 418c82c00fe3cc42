"""Have Claude Code and Codex ask a review before they write: the command that their hook runs.

The agent gives it what it is about to write on standard input. If a session reviews the folder, the
edit is shown there and the decisions are printed; otherwise nothing happens. ``--install`` adds it
to an agent's settings and ``--remove`` takes it out, after they have shown the change.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, cast

from midstream.commands.common import wrapped
from midstream.errors import UsageError, UserError

AGENTS = ("claude", "codex")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--install",
        choices=AGENTS,
        help="make this agent run the hook: shows what that changes in its settings file, and "
        "writes it if you agree",
    )
    ways.add_argument(
        "--remove",
        choices=AGENTS,
        help="take the hook out of this agent's settings file again, in the same way",
    )


def run(options: argparse.Namespace) -> int:
    """Answer a hook, install it or remove it; returns the exit code."""
    if options.install is not None:
        return install(options.install)
    if options.remove is not None:
        return remove(options.remove)
    if os.isatty(0):
        raise UsageError(
            "`midstream hook` is what Claude Code and Codex run before each edit, which they "
            "send it; `midstream hook --install claude` (or codex) sets that up, and --remove "
            "takes it back."
        )
    from midstream.agents.hook_client import main

    return main()


def install(agent: str) -> int:
    """Show what would be added to an agent's settings, and add it if the user agrees.

    Returns:
        0 if the hook is there afterwards, 1 if it is not.

    Raises:
        UserError: The settings cannot be read or written.
    """
    from midstream.agents.hooks import COMMAND, merged_hooks

    path = _settings_file(agent)
    text = _read(path)
    existing = _parse(path, text)
    merged = merged_hooks(existing, agent, _command())
    if merged == existing:
        print(f"{path} already has the hook.")
        return 0
    if not _write_if_agreed(path, text, merged):
        return 1
    print(
        wrapped(f"{path} has the hook now; `midstream hook --remove {agent}` takes it out again.")
    )
    if text:
        _tell_copy(path)
    if agent == "codex":
        print("Codex runs it once you have trusted it: type /hooks there.")
    if _command() == COMMAND and shutil.which("midstream") is None:
        print("The agent must find the program midstream: put its folder on the PATH.")
    print(
        wrapped(
            "Next: run `midstream review .` in the folder in which the agent works. Its edits then "
            "wait there for your decision. Without a review of its folder, the agent works as "
            "before."
        )
    )
    return 0


def remove(agent: str) -> int:
    """Show what would be taken out of an agent's settings, and take it out if the user agrees.

    Returns:
        0 if the hook is not there afterwards, 1 if it is.

    Raises:
        UserError: The settings cannot be read or written.
    """
    from midstream.agents.hooks import without_hooks

    path = _settings_file(agent)
    text = _read(path)
    existing = _parse(path, text)
    left = without_hooks(existing)
    if left == existing:
        print(f"{path} does not have the hook.")
        return 0
    if not _write_if_agreed(path, text, left):
        return 1
    if path.exists():
        print(wrapped(f"{path} does not have the hook any more; the agent writes without asking."))
        _tell_copy(path)
    else:
        print(wrapped(f"{path} had nothing else and is gone; the agent writes without asking."))
    return 0


def _tell_copy(path: Path) -> None:
    print(wrapped(f"The file as it was is beside it, as {_copy_of(path).name}."))


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.before-midstream")


def _write_if_agreed(path: Path, text: str, settings: dict[str, Any]) -> bool:
    """Show how a settings file changes and write it after a yes; whether it was written.

    A file that would be left without any settings is deleted, unless a link leads to it.
    """
    new = ""
    if settings or path.is_symlink():
        indent = re.search(r"\n([ \t]+)\S", text)
        new = json.dumps(settings, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
    changes = difflib.unified_diff(
        text.splitlines(), new.splitlines(), str(path), str(path), lineterm=""
    )
    print("\n".join(changes))
    print(f"\n{'Write this' if new else 'Delete the file'}? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print("Nothing was changed.")
        return False
    _write(path, text, new)
    return True


def _command() -> str:
    """What the agent runs: the program by its name, or by its place if the PATH lacks it."""
    from midstream.agents.hooks import COMMAND

    program = Path(sys.executable).with_name("midstream")
    if shutil.which("midstream") is not None or not program.is_file():
        return COMMAND
    return f"{shlex.quote(str(program))} hook"


def _settings_file(agent: str) -> Path:
    if agent == "claude":
        folder = os.environ.get("CLAUDE_CONFIG_DIR")
        return (Path(folder) if folder else Path.home() / ".claude") / "settings.json"
    folder = os.environ.get("CODEX_HOME")
    return (Path(folder) if folder else Path.home() / ".codex") / "hooks.json"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        settings: object = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(settings, dict):
        raise UsageError(f"{path} is not a JSON object with settings; correct it first.")
    return cast("dict[str, Any]", settings)


def _write(path: Path, old: str, new: str) -> None:
    """Write a settings file, or delete it with its copy if neither has settings of the user's."""
    from midstream.workspace import atomic

    try:
        if not new:
            path.unlink()
            if _has_only_hook(_copy_of(path)):
                _copy_of(path).unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if old:
            atomic.overwrite(_copy_of(path), old.encode())
        atomic.overwrite(path, new.encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}).") from None


def _has_only_hook(path: Path) -> bool:
    """Whether a file has no settings besides our hook."""
    from midstream.agents.hooks import without_hooks

    try:
        return not without_hooks(_parse(path, _read(path))) and path.is_file()
    except UserError:
        return False
