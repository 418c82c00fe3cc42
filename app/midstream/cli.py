"""The command line: ``midstream [PATH]`` opens the screen, ``midstream COMMAND`` runs a command.

Nothing is imported before it is needed: ``--help`` loads neither a model runtime nor the screen.
Errors are one sentence on standard error (an object on standard output with ``--json``); exit codes
are 0 done, 1 the answer is no, 2 bad usage, 3 endpoint or model unavailable.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from midstream import __version__
from midstream.arguments import CommandParser
from midstream.errors import UsageError, UserError

if TYPE_CHECKING:
    from midstream.agents.catalogue import KnownAgent
    from midstream.demo import DemoInfo
    from midstream.settings import Settings
    from midstream.workspace.snapshot import Snapshot

INTERRUPTED = 130
"""Exit code after Ctrl+C, as in shells."""

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a full or broken standard output."""


BENCHES = ("engine", "tui", "wire", "edits", "guard", "review", "commits")
"""Modules of ``midstream.bench`` with ``run(argv) -> int``."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        name: What is typed.
        summary: One line for the list of commands.
        module: Module with ``add_arguments(parser)`` and ``run(options) -> int``; its docstring
            begins with the description.  ``""`` for a command of this module.
        add_arguments: Declares the arguments of a command of this module.
        run: Runs it; its docstring is the description.
    """

    name: str
    summary: str
    module: str = ""
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None
    run: Callable[[argparse.Namespace], int] | None = None

    def parser(self) -> argparse.ArgumentParser:
        """Its parser; the parsed options have the function to call as ``run``."""
        if self.name == "wafer":  # a program of its own, with its own errors
            from midstream.wafer.commands import build_parser

            return build_parser()
        module = import_module(self.module) if self.module else None
        description = (self.run.__doc__ if module is None else module.__doc__) or ""
        parser = CommandParser(
            prog=f"midstream {self.name}", description=description.partition("\n\n")[0]
        )
        add_arguments = self.add_arguments if module is None else module.add_arguments
        if add_arguments is not None:
            add_arguments(parser)
        parser.set_defaults(run=self.run if module is None else module.run)
        return parser


def _end_as_first_process() -> None:
    """Have SIGTERM end whatever is run as the first process of a container, which ignores it."""
    if os.getpid() == 1:
        from midstream.processes import end_by_signals

        end_by_signals()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_missing_streams()
    _end_as_first_process()
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
        if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
            raise
        _drop_output()
        reason = error.strerror or "write error"
        _report(UserError(f"Standard output cannot be written: {reason}; redirect it elsewhere."))
        return UserError.exit_code


def _open_missing_streams() -> None:
    """Open the null device for standard streams that the caller closed (``<&-`` in a shell).

    Otherwise the next file that is opened would get the stream's descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _drop_output() -> None:
    """Redirect standard output to the null device: Python flushes it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: UserError, *, as_json: bool = False) -> None:
    from midstream.commands.common import print_json, printable, wrapped

    if as_json:
        value: dict[str, Any] = {"code": error.code, "message": str(error)}
        candidates = getattr(error, "candidates", ())
        if candidates:
            value["candidates"] = [candidate.label for candidate in candidates]
        print_json({"error": value})
    else:
        # The sentence may quote what a model said.
        said = wrapped(f"midstream: {printable(str(error))}", sys.stderr)
        print(said, file=sys.stderr)


def _dispatch(arguments: list[str]) -> int:
    command = next((c for c in COMMANDS if arguments[:1] == [c.name]), None)
    if command is None:
        return _run_screen(arguments)
    if command.name == "wafer":  # a program of its own, with its own errors
        from midstream.wafer.commands import main as run_wafer

        return run_wafer(arguments[1:])
    options = command.parser().parse_args(arguments[1:])
    return options.run(options)


def screen_parser() -> CommandParser:
    """The parser of ``midstream [PATH]``."""
    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    parser = CommandParser(
        prog="midstream",
        description="A terminal pair programmer: review hunks while the model is still writing.",
        epilog=f"commands:\n{listed}\n\n`midstream COMMAND --help` explains one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path", nargs="?", default=".", metavar="PATH", help="a folder, or a file in a project"
    )
    _program_arguments(parser)
    return parser


class _Version(argparse.Action):
    """Prints versions and exits; they are read from the packages' metadata, nothing is loaded."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        from midstream.resources import model_folders

        models = " and ".join(folder.name for folder in model_folders()) or "no model"
        python = ".".join(map(str, sys.version_info[:3]))
        print(f"midstream {__version__}")
        print(f"{models}, onnxruntime {version('onnxruntime')}, Python {python}")
        parser.exit()


def _program_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="show the version, the built-in model and its engine, and exit",
    )
    _resume_argument(parser)
    _screen_arguments(parser)


def _program_parser() -> CommandParser:
    """One parser of all commands; without the path, which would stand where they do."""
    parser = CommandParser(prog="midstream")
    _program_arguments(parser)
    commands = parser.add_subparsers(parser_class=argparse.ArgumentParser)
    for command in COMMANDS:
        one = command.parser()
        commands.add_parser(command.name, help=command.summary, parents=[one], add_help=False)
    return parser


def _resume_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--resume", action="store_true", help="continue the last session here")


def _screen_arguments(parser: argparse.ArgumentParser) -> None:
    from midstream.commands.common import add_model_options

    parser.add_argument(
        "--plain", action="store_true", help="line by line: for screen readers, pipes and scripts"
    )
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    add_model_options(parser)


def _run_screen(arguments: list[str]) -> int:
    _check_command(arguments)
    return _open_path(screen_parser().parse_args(arguments))


def _review_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "revisions",
        nargs="?",
        metavar="RANGE",
        help="commits to look at, read-only: A..B, A...B, A (up to HEAD) or A^! (that one)",
    )
    parser.add_argument("path", nargs="?", metavar="PATH", help="folder to review")
    parser.add_argument(
        "--staged", action="store_true", help="look at what is staged instead, read-only"
    )
    _resume_argument(parser)
    _screen_arguments(parser)


def _run_review(options: argparse.Namespace) -> int:
    """Review what agents and other programs write, hunk by hunk: keep it or put it back.

    Begins with what is changed and not staged, and follows every write from then on.  A range of
    commits is looked at in the same way, and nothing is written.
    """
    span = options.revisions
    if options.path is None and span is not None and Path(span).exists():
        options.path, span = span, None  # A revision of the same name is `NAME..`.
    options.path = options.path or "."
    if options.staged:
        if span is not None:
            raise UsageError("--staged compares with the last commit; leave the revisions out.")
        span = "--staged"
    if span is None:
        return _open_path(options, review=True)
    from midstream.workspace.snapshot import Snapshot, find_range

    folder = Path(options.path)
    settings, flags = _read_settings(folder, options)
    if not options.plain:
        _check_terminal()
    with Snapshot(folder, find_range(folder, span), when_many=_announce) as snapshot:
        journal = None
        if options.resume:
            journal = _last_journal(snapshot.root, f"review of {snapshot.label}", snapshot.command)
        return _open(
            snapshot.root, settings, flags, options, resume=journal, review=True, snapshot=snapshot
        )


def _announce(files: int) -> None:
    print(
        f"midstream: writing a copy of {files:,} files to review; it is removed at the end.",
        file=sys.stderr,
    )


def _agent_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agent",
        nargs="?",
        metavar="AGENT",
        help="claude, codex, gemini, opencode, or another agent's command in quotes; without one, "
        "list them",
    )
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="folder to work on")
    _resume_argument(parser)
    _screen_arguments(parser)


def _run_agent(options: argparse.Namespace) -> int:
    """Work with a coding agent, and decide what it writes hunk by hunk.

    Any agent that speaks the Agent Client Protocol will do. It is started here; what it writes is
    kept or put back, and what it asks is answered on the screen.
    """
    from midstream.agents.catalogue import find_agent

    if options.agent is None:
        return _list_agents()
    agent = find_agent(options.agent)
    agent.check()
    if options.plain:
        raise UsageError("An agent needs the screen; `midstream review --plain` reviews its edits.")
    return _open_path(options, review=options.resume, agent=agent)


def _list_agents() -> int:
    """Print the known agents, and how to get those that are missing."""
    from midstream.agents.catalogue import known_agents

    for agent in known_agents():
        state = "installed" if agent.installed else f"not installed: {agent.install}"
        print(f"{agent.name:<10}{agent.title:<16}{state}")
    print("\n`midstream agent NAME` starts one here; the command of another agent goes in quotes.")
    return 0


def _open_path(
    options: argparse.Namespace, *, review: bool = False, agent: KnownAgent | None = None
) -> int:
    from midstream.project import opened_by

    path = Path(options.path)
    root, _ = opened_by(path)
    settings, flags = _read_settings(root, options)
    journal = None
    if options.resume:
        what, command = f"session of {root.resolve()}", f"midstream {path}"
        if agent is not None:
            what = f"session of {agent.title} in {root.resolve()}"
            command = shlex.join(("midstream", "agent", agent.key))
        journal = _last_journal(root, what, command, agent)
    return _open(path, settings, flags, options, resume=journal, review=review, agent=agent)


def _run_demo(options: argparse.Namespace) -> int:
    """Try Midstream on a temporary copy of a small project."""
    from midstream.demo import READING_PACE, check_command, for_demo, make_demo
    from midstream.scratch import scratch_folder

    settings, flags = _read_settings(None, options, for_demo)
    flags["check_command"] = check_command()
    settings = replace(settings, check_command=check_command())
    if not options.plain:
        _check_terminal()
        built_in = settings.profile is None and options.replay is None
        if built_in and settings.pace is None and settings.pacing == "off":
            flags["pace"] = READING_PACE
            settings = replace(settings, pace=READING_PACE)
    with scratch_folder() as folder:
        info = make_demo(folder)
        return _open(info.root, settings, flags, options, demo=info)


def _read_settings(
    folder: Path | None,
    options: argparse.Namespace,
    change: Callable[[Settings], Settings] | None = None,
) -> tuple[Settings, dict[str, object]]:
    """The settings for a folder, and those among them that the command sets.

    Args:
        folder: The folder; ``None`` for none.
        options: What the command line sets.
        change: What the command changes before that.
    """
    from midstream.commands.common import with_options
    from midstream.settings import load_settings

    configured = load_settings(folder)
    settings = with_options(configured if change is None else change(configured), options)
    if options.ascii:
        settings = replace(settings, ascii=True)
    return settings, settings.changes_since(configured)


def _open(
    path: Path,
    settings: Settings,
    flags: dict[str, object],
    options: argparse.Namespace,
    *,
    resume: Path | None = None,
    review: bool = False,
    agent: KnownAgent | None = None,
    snapshot: Snapshot | None = None,
    demo: DemoInfo | None = None,
) -> int:
    """Open the screen, or plain mode, on a path."""
    replay = options.replay
    if options.plain:
        from midstream.plain.loop import run_plain

        return run_plain(
            path, settings, resume=resume, review=review, snapshot=snapshot, replay=replay
        )
    _check_terminal()
    from midstream.tui import garbage

    with garbage.keeping():  # to look through what is imported takes a tenth of importing it
        from midstream.tui.app import run_app

    return run_app(
        path,
        settings,
        demo=demo,
        resume=resume,
        review=review,
        agent=agent,
        snapshot=snapshot,
        replay=replay,
        flags=flags,
    )


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=BENCHES, help="what to measure")
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, metavar="...", help="its options; try --help"
    )


def _run_bench(options: argparse.Namespace) -> int:
    """Measure how fast and how well Midstream works on this machine."""
    run: Callable[[list[str]], int] = import_module(f"midstream.bench.{options.what}").run
    return run(options.options)


def _doctor_arguments(parser: argparse.ArgumentParser) -> None:
    from midstream.commands.doctor import add_arguments

    add_arguments(parser)


def _run_doctor(options: argparse.Namespace) -> int:
    """Show what works on this machine and how to fix the rest."""
    from midstream.commands.doctor import run
    from midstream.tui.keymap import key_troubles

    return run(options, key_troubles)


def _completion_arguments(parser: argparse.ArgumentParser) -> None:
    from midstream.commands.completion import add_arguments

    add_arguments(parser)


def _run_completion(options: argparse.Namespace) -> int:
    """Print a shell's completion script: in ~/.bashrc, eval "$(midstream completion bash)"."""
    from midstream.commands.completion import completion_script

    print(completion_script(_program_parser(), options.shell))
    return 0


def _check_command(arguments: list[str]) -> None:
    """Recognise a mistyped command.

    Raises:
        UsageError: The first argument is neither.
    """
    first = next((a for a in arguments if not a.startswith("-")), None)
    if first is None or first != arguments[0] or Path(first).exists():
        return
    near = difflib.get_close_matches(first, [c.name for c in COMMANDS], n=1)
    hint = f'did you mean "midstream {near[0]}"?' if near else "name one that exists."
    raise UsageError(f"There is no file or folder {first}; {hint}")


def _check_terminal() -> None:
    if os.environ.get("TEXTUAL_DRIVER"):  # `textual serve` shows the screen in a browser
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The screen needs a terminal; --plain and `midstream edit FILE -m TEXT` work without."
        )
    if (term := os.environ.get("TERM", "")) == "dumb":
        raise UsageError(
            f"The screen needs a terminal that can move its cursor, and TERM is {term}; --plain "
            "works here."
        )


def _last_journal(root: Path, what: str, command: str, agent: KnownAgent | None = None) -> Path:
    """The journal to resume of a folder, or of an agent in it.

    Args:
        root: The folder.
        what: What is looked for, in words.
        command: What begins one.
        agent: The agent.

    Raises:
        UsageError: There is none.
    """
    from midstream.pairing.journal.journal import session_to_resume

    journal = session_to_resume(root, None if agent is None else agent.key)
    if journal is None:
        raise UsageError(f"There is no {what} to resume; start one with `{command}`.")
    return journal


COMMANDS = (
    Command(
        "demo", "try it on a temporary copy of a small project", "", _screen_arguments, _run_demo
    ),
    Command(
        "review",
        "keep or put back what agents and other programs write",
        "",
        _review_arguments,
        _run_review,
    ),
    Command(
        "agent",
        "work with a coding agent and decide what it writes",
        "",
        _agent_arguments,
        _run_agent,
    ),
    Command("web", "open the screen in a browser on this machine", "midstream.commands.web"),
    Command(
        "hook",
        "let Claude Code and Codex ask a review before they write",
        "midstream.commands.hook",
    ),
    Command(
        "mcp", "tell an agent the state of the review of its changes", "midstream.commands.mcp"
    ),
    Command("edit", "carry out one instruction without the screen", "midstream.commands.edit"),
    Command("apply", "apply a model's reply from standard input", "midstream.commands.apply"),
    Command("serve", "run the model server alone", "midstream.commands.serve"),
    Command("models", "list, check, add and download models", "midstream.commands.models"),
    Command("wafer", "simulate a wafer-scale engine", "midstream.wafer.commands"),
    Command("guard", "scan files for security problems", "midstream.commands.guard"),
    Command(
        "config", "show settings and their sources, or change one", "midstream.commands.config"
    ),
    Command("bench", "run benchmarks on this machine", "", _bench_arguments, _run_bench),
    Command(
        "completion",
        "print the completion script of a shell",
        "",
        _completion_arguments,
        _run_completion,
    ),
    Command("doctor", "check what works on this machine", "", _doctor_arguments, _run_doctor),
)
