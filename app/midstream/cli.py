"""The command line: ``midstream [PATH]`` opens the screen, ``midstream COMMAND`` does one thing.

Nothing is imported before it is needed: ``--help`` loads neither a model runtime nor the screen.
Errors are one sentence on standard error (an object on standard output with ``--json``); exit codes
are 0 done, 1 the answer is no, 2 bad usage, 3 endpoint or model unavailable.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream import __version__
from midstream.arguments import Parser
from midstream.errors import UsageError, UserError

if TYPE_CHECKING:
    from midstream.settings import Settings

INTERRUPTED = 130
"""Exit code after Ctrl+C, as shells have it."""

_NOT_TAKEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a full or broken standard output answers."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and where it lives.

    Attributes:
        name: What is typed.
        summary: One line for the list of commands.
        module: Module with ``add_arguments(parser)`` and ``run(options) -> int``.
        function: Instead of these, a function of ``module`` that takes the arguments as a list.
    """

    name: str
    summary: str
    module: str
    function: str = ""


COMMANDS = (
    Command("demo", "try it on a throw-away copy of a small project", "midstream.cli", "demo"),
    Command("edit", "one instruction without the screen", "midstream.commands.edit"),
    Command("apply", "apply a model's reply from standard input", "midstream.commands.apply"),
    Command("serve", "the model server alone", "midstream.commands.serve"),
    Command("models", "list, info, check and add models", "midstream.commands.models"),
    Command("wafer", "the wafer-scale simulator", "midstream.wafer.commands", "main"),
    Command("guard", "scan files as the live guard would", "midstream.commands.guard"),
    Command("config", "settings, where they come from, changing one", "midstream.commands.config"),
    Command("bench", "measure this machine", "midstream.cli", "bench"),
    Command("doctor", "what works on this machine, and what to do", "midstream.cli", "doctor"),
)

BENCHES = ("engine", "tui", "wire", "edits", "guard")
"""Modules of ``midstream.bench`` with ``run(argv) -> int``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_missing_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except UserError as error:
        _report(error, as_json="--json" in arguments)
        return error.exit_code
    except KeyboardInterrupt:
        print("midstream: stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:
        if error.errno not in _NOT_TAKEN or error.filename is not None:
            raise
        _drop_output()
        reason = error.strerror or "it takes nothing more"
        _report(UserError(f"Standard output cannot be written: {reason}; send it elsewhere."))
        return UserError.exit_code


def _open_missing_streams() -> None:
    """Put the null device where the caller closed a standard stream, as ``<&-`` in a shell does.

    Otherwise the next file that is opened would take the number of the stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _drop_output() -> None:
    """Lead standard output away, since Python would try to flush it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: UserError, *, as_json: bool = False) -> None:
    if as_json:
        value: dict[str, Any] = {"code": error.code, "message": str(error)}
        candidates = getattr(error, "candidates", ())
        if candidates:
            value["candidates"] = [candidate.label for candidate in candidates]
        print(json.dumps({"error": value}, ensure_ascii=False))
    else:
        from midstream.commands.common import printable

        # The sentence may quote what a model said.
        print(f"midstream: {printable(str(error))}", file=sys.stderr)


def _dispatch(arguments: list[str]) -> int:
    command = next((c for c in COMMANDS if arguments[:1] == [c.name]), None)
    if command is None:
        return screen(arguments)
    rest = arguments[1:]
    if command.function:
        function: Callable[[list[str]], int] = getattr(
            import_module(command.module), command.function
        )
        return function(rest)
    module = import_module(command.module)
    parser = Parser(
        prog=f"midstream {command.name}", description=(module.__doc__ or "").partition("\n\n")[0]
    )
    module.add_arguments(parser)
    return module.run(parser.parse_args(rest))


def screen(arguments: list[str]) -> int:
    """``midstream [PATH]``: the screen on a folder or file.

    Raises:
        UserError: The path, the settings or the session cannot be used.
    """
    from midstream.commands.common import add_model_options

    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    parser = Parser(
        prog="midstream",
        description="A terminal pair programmer: decide hunks while the model is still writing.",
        epilog=f"commands:\n{listed}\n\n`midstream COMMAND --help` explains one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path", nargs="?", default=".", metavar="PATH", help="folder, or a file of a project"
    )
    parser.add_argument("--resume", action="store_true", help="take up the last session here")
    _add_looks(parser)
    parser.add_argument("--version", action="version", version=f"midstream {__version__}")
    add_model_options(parser)
    _check_command(arguments)
    options = parser.parse_args(arguments)
    from midstream.project import opened_by
    from midstream.settings import load_settings

    path = Path(options.path)
    configured = load_settings(opened_by(path)[0])
    settings = _as_asked(configured, options)
    journal = _last_journal(path) if options.resume else None
    if options.plain:
        from midstream.plain.loop import run_plain

        return run_plain(path, settings, resume=journal, replay=options.replay)
    _check_terminal()
    from midstream.tui.app import run_app

    flags = settings.changes_since(configured)
    return run_app(path, settings, resume=journal, replay=options.replay, flags=flags)


def demo(arguments: list[str]) -> int:
    """``midstream demo``: the screen on a throw-away copy of the example project.

    Raises:
        UserError: The settings or the session cannot be used.
    """
    from midstream.commands.common import add_model_options

    parser = Parser(
        prog="midstream demo",
        description="Try Midstream on a throw-away copy of a small project.",
    )
    _add_looks(parser)
    add_model_options(parser)
    options = parser.parse_args(arguments)
    from midstream.demo import make_demo
    from midstream.settings import load_settings

    configured = load_settings()
    settings = _as_asked(configured, options)
    if not options.plain:
        _check_terminal()
    info = make_demo()
    try:
        if options.plain:
            from midstream.plain.loop import run_plain

            return run_plain(info.root, settings, replay=options.replay)
        from midstream.tui.app import run_app

        flags = settings.changes_since(configured)
        return run_app(info.root, settings, demo=info, replay=options.replay, flags=flags)
    finally:
        print(f"The copy you worked on is {info.root}; delete it when you like.")


def bench(arguments: list[str]) -> int:
    """``midstream bench WHAT``: run one of the benchmarks.

    Raises:
        UsageError: There is no such benchmark.
    """
    parser = Parser(prog="midstream bench", description="Measure this machine.")
    parser.add_argument("what", choices=BENCHES, help="what to measure; --help behind it says how")
    options = parser.parse_args(arguments[:1])
    run: Callable[[list[str]], int] = import_module(f"midstream.bench.{options.what}").run
    return run(arguments[1:])


def doctor(arguments: list[str]) -> int:
    """``midstream doctor``: what works on this machine, and what the screen says of the keys."""
    from midstream.commands.doctor import add_arguments, run

    parser = Parser(
        prog="midstream doctor",
        description="What works on this machine, and what to do about what does not.",
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    from midstream.tui.own_keys import key_troubles

    return run(options, key_troubles)


def _check_command(arguments: list[str]) -> None:
    """Tell a mistyped command from a path.

    Raises:
        UsageError: The first argument is neither.
    """
    first = next((a for a in arguments if not a.startswith("-")), None)
    if first is None or first != arguments[0] or Path(first).exists():
        return
    near = difflib.get_close_matches(first, [c.name for c in COMMANDS], n=1)
    hint = f'did you mean "midstream {near[0]}"?' if near else "name one that exists."
    raise UsageError(f"There is no file or folder {first}; {hint}")


def _add_looks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plain", action="store_true", help="line by line: for screen readers, pipes and scripts"
    )
    parser.add_argument(
        "--ascii", action="store_true", help="draw the screen with ASCII characters only"
    )


def _as_asked(settings: Settings, options: argparse.Namespace) -> Settings:
    """The settings with what the command line says instead."""
    from midstream.commands.common import with_options

    settings = with_options(settings, options)
    return replace(settings, ascii=True) if options.ascii else settings


def _check_terminal() -> None:
    if os.environ.get("TEXTUAL_DRIVER"):  # `textual serve` shows the screen in a browser
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The screen needs a terminal; --plain and `midstream edit FILE -m TEXT` work without."
        )


def _last_journal(path: Path) -> Path:
    from midstream.project import opened_by
    from midstream.workspace.journal import Journal
    from midstream.workspace.paths import state_dir

    root, _ = opened_by(path)
    journal = Journal.latest(state_dir(), root)
    if journal is None:
        raise UsageError(
            f"There is no session of {root.resolve()} to resume; start one with `midstream {path}`."
        )
    return journal
