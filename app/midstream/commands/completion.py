"""Shell completion scripts, generated from the declarations of the commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")

_FILES = {"PATH", "FILE", "SCRIPT"}
_FOLDERS = {"FOLDER", "DIR"}
"""Spellings of values that are completed as files (folders included) and as folders."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "shell",
        choices=SHELLS,
        help="for bash and zsh the line goes into the shell's start file, after zsh's compinit; "
        "for fish: midstream completion fish > ~/.config/fish/completions/midstream.fish",
    )


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script that makes a shell complete commands, options, choices, settings and files.

    Args:
        parser: The parser of the whole command line; it is changed, and no longer good to parse.
        shell: One of ``SHELLS``.
    """
    import shtab

    from midstream.settings import SETTINGS

    for one, action in _actions(parser):
        # Such as NAME|FOLDER, FILE[:A-B], off|wafer|replay[:MODEL].
        spelled = [part.partition("[")[0] for part in str(action.metavar).split("|")]
        if one.prog == "midstream config" and action.dest == "key":
            action.choices = [setting.label for setting in SETTINGS]
        elif any(part.islower() for part in spelled):
            action.choices = [part for part in spelled if part.islower()]
        elif not _FILES.isdisjoint(spelled):
            action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
        elif not _FOLDERS.isdisjoint(spelled):
            action.complete = shtab.DIRECTORY  # pyright: ignore[reportAttributeAccessIssue]
    script = shtab.complete(parser, shell)
    if shell == "bash":  # `midstream FILE`: files where nothing else matches
        script += f"\ncomplete -o bashdefault -o default -F _shtab_{parser.prog} {parser.prog}"
    return script


def _actions(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[argparse.ArgumentParser, argparse.Action]]:
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        yield parser, action
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            below: dict[str, argparse.ArgumentParser] = action.choices  # pyright: ignore
            for inner in dict.fromkeys(below.values()):
                yield from _actions(inner)
