"""Every setting, declared once: the fields of ``Settings``.

A field holds the default.  Its declaration adds the type, the section, the sentence that explains
it and the key in the configuration file.  Reading, checking and writing the file, environment
variables, the settings page, ``midstream config`` and ``docs/settings.md`` are all driven by
``SETTINGS``, the table of these declarations.  To add a setting, add a field here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from midstream.errors import UsageError
from midstream.resources import config_path
from midstream.responses.dialect import EFFORTS
from midstream.responses.endpoint import TRANSPORTS, Transport, complete_address, is_address
from midstream.responses.profiles import BUILT_IN, KNOWN_NAMES, Profile
from midstream.settings.value_types import (
    BINDS,
    BOOLEAN,
    COUNT,
    FOLDER,
    LEVELS,
    MEGABYTES,
    NAME,
    PACING,
    RATE,
    TEXT,
    URL,
    Kind,
    ValueType,
    number,
    one_of,
    suggest,
)
from midstream.workspace.paths import shown

KEY_PRESETS: Final = ("default", "git", "vim", "emacs")
LAYOUTS: Final = ("auto", "unified", "split")
OWN_EFFORTS: Final = ("auto", "low", "medium", "high", "xhigh")
"""Efforts of the built-in server's models."""
SESSION_EFFORTS: Final = ("auto", *EFFORTS)
"""Efforts of any session; the endpoint's profile names those that its model accepts."""


class Section(StrEnum):
    """Headings of the settings page."""

    LOOKS = "Appearance"
    KEYS = "Keys"
    MODEL = "Built-in model"
    ENDPOINT = "Endpoint"
    ANSWERS = "Answers"
    CARE = "Safety"


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one setting.

    Attributes:
        type: What it can hold.
        section: The heading it stands under.
        help: What it does, in a sentence or two.
        key: Its dotted name in the configuration file.
        name: The field of ``Settings``.
        default: Its value where nothing sets it.
        none: What an empty value means, in words.
        example: A value to show where there is none.
        at_once: Whether a change applies to the running program, not only from the next start.
        in_projects: Whether a folder's own file may set it.
        table_key: Where ``key`` can also be a table of other settings: this setting's key in it.
        in_environment: Whether an environment variable can set it.
        also: Other words by which people look for it.
    """

    type: ValueType
    section: Section
    help: str
    key: str
    name: str = ""
    default: object = None
    none: str = "none"
    example: object = "NAME"
    at_once: bool = False
    in_projects: bool = False
    table_key: str = ""
    in_environment: bool = True
    also: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that sets it; ``""`` if none can."""
        return f"MIDSTREAM_{self.name.upper()}" if self.in_environment else ""

    @property
    def label(self) -> str:
        """The key as people read it: a table ends in ``.*``."""
        return f"{self.key}.*" if self.type.kind is Kind.TABLE else self.key

    @property
    def path(self) -> tuple[str, ...]:
        """The key, part by part."""
        return tuple(self.key.split("."))

    def format(self, value: object) -> str:
        """A value as people read it."""
        if value is None or value == "" or value == ():
            return self.none
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, float):
            return f"{value:g}"
        if isinstance(value, tuple):
            pairs = cast("tuple[tuple[str, str], ...]", value)
            if len(pairs) > 2:
                return f"{len(pairs)} of your own"
            return ", ".join(f"{name} = {text}" for name, text in pairs)
        return str(value)

    def toml(self, value: object) -> str:
        """The line of the configuration file that sets a value."""
        if self.type.kind is Kind.TABLE:
            return str(self.example)
        if value in (None, ""):
            value = self.example
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return f"{self.key} = {json.dumps(value, default=str, ensure_ascii=False)}"


T = TypeVar("T")


def setting(
    default: T, holds: ValueType, section: Section, sentence: str, key: str = "", **facts: Any
) -> T:
    """Declare a field of ``Settings``; the key defaults to its name, for ``facts`` see
    ``Setting``.
    """
    declared = Setting(holds, section, sentence, key, default=default, **facts)
    return field(default=default, metadata={"setting": declared})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with its default; ``Setting.help`` says what each does.

    Three hold more than one value.  ``endpoints`` are the tables ``[endpoints.NAME]``, in the order
    of the file.  ``key_binds`` pairs actions with the user's keys; the screen reports those it does
    not know.  ``guard_levels`` pairs guard rules with ``halt``, ``warn`` or ``off``.
    """

    # fmt: off
    theme: str | None = setting(
        None, NAME, Section.LOOKS,
        "Colours; automatic is midnight, or ansi in a terminal of 16 colours. Put your own themes "
        "into the folder `themes` beside the configuration file.",
        none="automatic", example="paper",
        at_once=True, in_projects=True,
        also="dark light colour color appearance",
    )
    layout: str = setting(
        "auto", one_of(LAYOUTS), Section.LOOKS,
        "How a diff is drawn: in one column, old and new side by side, or whichever fits.",
        at_once=True, in_projects=True,
        also="side-by-side columns diff view",
    )
    ascii: bool = setting(
        False, BOOLEAN, Section.LOOKS,
        "Draw with ASCII characters only, for terminals and fonts that lack the others.",
        also="unicode font glyphs",
    )
    keys: str = setting(
        "default", one_of(KEY_PRESETS), Section.KEYS,
        "The key preset to start from; your own keys override it. j, k, g, G and / work in every "
        "preset.",
        "keys.preset", at_once=True,
        also="vim vi emacs shortcuts keybindings hotkeys",
    )
    key_binds: tuple[tuple[str, str], ...] = setting(
        (), BINDS, Section.KEYS,
        "Your own keys by action, separated by commas; an action without keys stays in the "
        "palette.",
        "keys.bind", example='[keys.bind] "hunk.accept" = "a,y"', at_once=True,
        in_environment=False,
        also="shortcuts keybindings hotkeys remap",
    )
    model: Path | None = setting(
        None, FOLDER, Section.MODEL,
        "Model of the built-in server: a folder, or the name of an installed model.",
        "model.folder", none="the shipped model", example="~/models/mine",
        also="llm weights local",
    )
    threads: int | None = setting(
        None, COUNT, Section.MODEL,
        "Threads of the built-in server.",
        "model.threads", none="chosen by the server", example=4,
        also="cpu cores",
    )
    provider: str = setting(
        "cpu", TEXT, Section.MODEL,
        "Execution provider of the built-in server, such as cpu or cuda; `midstream doctor` shows "
        "what works here.", "model.provider",
        also="gpu cuda accelerator",
    )
    pace: float | None = setting(
        None, RATE, Section.MODEL,
        "Limit on the tokens per second that the built-in server writes; 20 is reading speed.",
        "model.pace", none="as fast as it can", example=20,
        also="slow speed",
    )
    pacing: str = setting(
        "off", PACING, Section.MODEL,
        "Have the built-in server answer at the simulated speed of a wafer or of GPUs that run a "
        "70-billion-parameter model, or the model named after a colon (gpu:llama3.1-8b). replay "
        "shows whole answers at a wafer's speed; off does neither.",
        "model.pacing", example="gpu",
        also="slow speed simulate cerebras",
    )
    cache_mb: int = setting(
        512, MEGABYTES, Section.MODEL,
        "Megabytes of disk for what local chat models have read, so that the next session need "
        "not have it read again; 0 keeps nothing.",
        "model.cache_mb",
        also="disk cache",
    )
    endpoints: tuple[Profile, ...] = ()
    broken_endpoints: tuple[tuple[str, str], ...] = ()
    """Endpoints of the file that cannot be used: names, and what is wrong with them."""
    endpoint: str | None = setting(
        None, NAME, Section.ENDPOINT,
        "The endpoint to use in place of the built-in server.",
        none="the built-in server",
        also="api key provider openai anthropic ollama server login",
    )
    endpoint_url: str | None = setting(
        None, URL, Section.ENDPOINT,
        "Address of an endpoint, in place of a name: wss://, ws://, https:// or http://.",
        "endpoint.url", example="wss://api.openai.com/v1",
        also="api server host address",
    )
    endpoint_model: str = setting(
        "", TEXT, Section.ENDPOINT,
        "The model to request from the endpoint.",
        "endpoint.model", none="the one in its profile",
    )
    endpoint_transport: Transport | None = setting(
        None, one_of(TRANSPORTS), Section.ENDPOINT,
        "How to speak to the endpoint: the Responses API over a WebSocket or over HTTP (sse), Chat "
        "Completions (chat), Anthropic's Messages (messages), or auto, which tries those that "
        "its kind may support.",
        "endpoint.transport", none="the one in its profile", example="chat",
    )
    endpoint_token_env: str | None = setting(
        None, TEXT, Section.ENDPOINT,
        "The environment variable with the key for endpoint.url; keys are never kept in a file.",
        "endpoint.token_env",
        also="api key secret password login",
    )
    effort: str = setting(
        "auto", one_of(SESSION_EFFORTS), Section.ANSWERS,
        "How much work goes into an answer: one pass (low), checks and one repair (medium), "
        "several ranked candidates (high, xhigh). A hosted model receives the effort as a "
        "parameter instead; none, minimal and max apply only there.",
        at_once=True,
        also="reasoning thinking quality",
    )
    check_command: str | None = setting(
        None, TEXT, Section.ANSWERS,
        "The project's test command. The checks page runs it; at high effort it ranks candidates "
        "in a temporary copy of the folder.",
        none="what the folder suggests, once confirmed",
        example="pytest -q",
        at_once=True,
        also="tests pytest lint",
    )
    check_after_accepts: bool = setting(
        False, BOOLEAN, Section.ANSWERS,
        "Run the test command whenever all hunks are decided.",
        at_once=True,
        also="tests automatic",
    )
    project_instructions: bool = setting(
        True, BOOLEAN, Section.ANSWERS,
        "Send the folder's AGENTS.md, CLAUDE.md and .cursorrules to chat models.",
        at_once=True,
        also="rules context",
    )
    related_code: bool = setting(
        True, BOOLEAN, Section.ANSWERS,
        "Send related code to chat models: definitions that the target uses, and places that use "
        "it.",
        also="context",
    )
    tools: str = setting(
        "always", one_of(("off", "questions", "always")), Section.ANSWERS,
        "Whether a hosted model may read files, search, look up definitions and use git before "
        "it answers, once you have allowed it in the session: never, for questions only, or "
        "always.",
        also="agent function calls permission",
    )
    ai_comments: bool = setting(
        True, BOOLEAN, Section.ANSWERS,
        "Carry out comments that begin or end with AI! when their file is saved.",
        at_once=True,
    )
    continuous: bool = setting(
        False, BOOLEAN, Section.ANSWERS,
        "Propose follow-on edits in the background whenever you save a change.",
        at_once=True,
        also="autocomplete next edit",
    )
    guard: bool = setting(
        True, BOOLEAN, Section.CARE,
        "Watch what the model writes and stop it at dangerous lines. Alt+G (the action guard.file) "
        "switches it off for one file.",
        at_once=True, in_projects=True, table_key="on",
        also="security watchdog secrets disable file",
    )
    guard_levels: tuple[tuple[str, str], ...] = setting(
        (), LEVELS, Section.CARE,
        "What the guard does by rule: halt stops the model, warn marks the hunk, off is silent.",
        "guard", none="as shipped", example='[guard] S608 = "warn"', in_projects=True,
        also="security rules ignore",
    )
    attention: bool = setting(
        True, BOOLEAN, Section.CARE,
        "Record which hunks were on screen long enough to be read. The record stays on this "
        "machine.", at_once=True,
        also="privacy tracking telemetry unread",
    )
    commit_trailer: bool = setting(
        False, BOOLEAN, Section.CARE,
        "End commit messages with the number of hunks that were accepted unread and in groups.",
        at_once=True,
        also="git message unread",
    )
    hold_edits: bool = setting(
        True, BOOLEAN, Section.CARE,
        "During a review, agents with Midstream's hooks write only what was accepted.",
        "agents.hold_edits",
        at_once=True,
        also="claude codex hooks",
    )
    hold_s: float = setting(
        570.0, number(1, 570, "1 to 570 seconds"), Section.CARE,
        "Seconds to wait for your decision before an agent is told to try again later.",
        "agents.hold_s",
        at_once=True,
        also="timeout claude codex hooks",
    )
    feedback: str = setting(
        "ask", one_of(("off", "ask", "automatic")), Section.CARE,
        "Whether agents are told which of their changes were put back, and why: never, when you "
        "ask for it, or at the next opportunity.",
        "agents.feedback",
        at_once=True,
        also="claude codex",
    )
    journal: bool = setting(
        True, BOOLEAN, Section.CARE,
        "Keep a journal of each session, so that `midstream --resume` can continue it.",
        also="history resume privacy",
    )
    # fmt: on

    @property
    def profile(self) -> Profile | None:
        """The endpoint to use, ``None`` for the built-in server.

        Raises:
            UsageError: No endpoint has the chosen name.
        """
        if self.endpoint is not None:
            found = {profile.name: profile for profile in self.endpoints}.get(self.endpoint)
            if found is None:
                raise UsageError(self._unknown_endpoint(self.endpoint))
            found = replace(found, model=self.endpoint_model or found.model)
        elif self.endpoint_url is not None:
            found = Profile.at(self.endpoint_url, self.endpoint_model, self.endpoint_token_env)
        else:
            return None
        return replace(found, transport=self.endpoint_transport or found.transport)

    def with_endpoint(self, chosen: str, where: str) -> Settings:
        """These settings with another endpoint.

        Args:
            chosen: Name of a configured endpoint or of a known service or engine, an address, a
                host, or "built-in" for the built-in server.
            where: The place that chose it, for error sentences.

        Raises:
            UsageError: No endpoint has that name.
        """
        settings = replace(
            self,
            endpoint=None,
            endpoint_url=None,
            endpoint_model="",
            endpoint_transport=None,
            endpoint_token_env=None,
        )
        if chosen == BUILT_IN:
            return settings
        if "://" in chosen:
            return replace(settings, endpoint_url=str(URL.check(chosen, where)))
        if chosen in {profile.name for profile in self.endpoints}:
            return replace(settings, endpoint=chosen)
        if chosen not in dict(self.broken_endpoints):
            if (known := Profile.known(chosen)) is not None:
                return replace(settings, endpoints=(*self.endpoints, known), endpoint=chosen)
            if is_address(chosen):
                return replace(settings, endpoint_url=complete_address(chosen))
        raise UsageError(f"{where}: {self._unknown_endpoint(chosen)}")

    def _unknown_endpoint(self, name: str) -> str:
        if (reason := dict(self.broken_endpoints).get(name)) is not None:
            return reason
        names = list(dict.fromkeys([*(one.name for one in self.endpoints), *KNOWN_NAMES]))
        otherwise = (
            f"known are {', '.join(names)}. Give an address such as https://api.openai.com/v1, or "
            f"add [endpoints.{shown(name)}] to {config_path()}."
        )
        return f'there is no endpoint "{shown(name)}"; {suggest(name, names, otherwise)}'

    def changes_since(self, before: Settings) -> dict[str, object]:
        """The settings in which these differ from ``before``, with their values here."""
        return {
            one.name: getattr(self, one.name)
            for one in SETTINGS
            if getattr(self, one.name) != getattr(before, one.name)
        }


def _declared() -> tuple[Setting, ...]:
    found: list[Setting] = []
    for one in fields(Settings):
        if (declared := cast("Setting | None", one.metadata.get("setting"))) is not None:
            found.append(replace(declared, name=one.name, key=declared.key or one.name))
    return tuple(found)


SETTINGS: Final = _declared()
BY_NAME: Final[Mapping[str, Setting]] = {one.name: one for one in SETTINGS}
TABLES: Final = tuple(dict.fromkeys(one.path[0] for one in SETTINGS if len(one.path) > 1))


def check_setting(name: str, value: object, where: str) -> object:
    """A value as the field ``name`` of ``Settings`` holds it.

    Raises:
        UsageError: The setting cannot have that value; the sentence names ``where``.
    """
    return BY_NAME[name].type.check(value, where)
