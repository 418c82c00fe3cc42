"""The catalogue of known coding agents, with what each of them needs."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from midstream.agents.acp import AgentError
from midstream.errors import UsageError
from midstream.processes import find_program


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent and its peculiarities; ``agents.toml`` explains the fields.

    Attributes:
        name: What is typed; ``""`` for a command of the user's own.
        title: What people call it.
        command: Program and arguments.
        install: Shell command that installs it, ``""`` if unknown.
        login: Shell command that logs in, ``""`` if unknown.
        asks: Mode in which it asks before an edit, ``""`` if there is none or it asks in any.
        ends_turn: Whether a rejection ends its turn.
        environ: Variables it needs, unless they are set.
        as_root: Further ones for the superuser, whatever they are set to.
    """

    name: str
    title: str
    command: tuple[str, ...]
    install: str = ""
    login: str = ""
    asks: str = ""
    ends_turn: bool = False
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    as_root: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def key(self) -> str:
        """The name by which ``find_agent`` finds it."""
        return self.name or shlex.join(self.command)

    @property
    def installed(self) -> bool:
        """Whether its program is found."""
        return find_program(self.command[0]) is not None

    def check(self) -> None:
        """Make sure that it is installed.

        Raises:
            AgentError: It is not; says how to install it.
        """
        if self.installed:
            return
        if self.install:
            raise AgentError(
                f"{self.title} needs the program {self.command[0]}", f"run `{self.install}`"
            )
        raise AgentError(f"There is no program {self.command[0]}", "install it, or name its path")

    def variables(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Variables to set besides an environment, which takes precedence unless it cannot work."""
        wanted = {n: value for n, value in self.environ.items() if n not in environ}
        return {**wanted, **(self.as_root if os.geteuid() == 0 else {})}


@cache
def known_agents() -> tuple[KnownAgent, ...]:
    """The agents of the catalogue."""
    file = Path(__file__).with_name("agents.toml")
    entries: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    return tuple(
        msgspec.convert({"name": name, **entry}, KnownAgent) for name, entry in entries.items()
    )


def find_agent(text: str) -> KnownAgent:
    """The agent that a user means by a name of the catalogue or by a command line.

    Raises:
        UsageError: It is empty, or has quotes that do not close.
    """
    for agent in known_agents():
        if agent.name == text:
            return agent
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(
            f"The agent's command {text!r} cannot be split into words: {error}."
        ) from error
    if not command:
        names = ", ".join(agent.name for agent in known_agents())
        raise UsageError(f"Name an agent ({names}) or the command of one.")
    return KnownAgent("", Path(command[0]).name, command)
