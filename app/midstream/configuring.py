"""Every setting as a person meets it: its name in the file, its help, where its value comes from.

The values themselves, their checks and the order of the places are ``settings``'s; writing the file
is ``config_file``'s.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, cast

from midstream.settings import (
    KEY_PRESETS,
    LAYOUTS,
    SESSION_EFFORTS,
    Settings,
    Source,
    setting_layers,
)


class Kind(StrEnum):
    """How a setting is written and changed."""

    BOOLEAN = "boolean"
    CHOICE = "choice"
    TEXT = "text"
    NUMBER = "number"
    TABLE = "table"
    """Pairs of a name and a text."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One setting.

    Attributes:
        name: Field of `Settings`.
        key: Name in the configuration file, with dots.
        kind: How it is changed.
        group: Heading it stands under.
        help: What it does, in a sentence or two.
        choices: What it may be, for a choice.
        at_once: Whether a change holds in the running program, or from the next start.
        none: What no value means, in words.
    """

    name: str
    key: str
    kind: Kind
    group: str
    help: str
    choices: tuple[str, ...] = ()
    at_once: bool = False
    none: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that sets it, ``""`` where none can."""
        return "" if self.name == "key_binds" else f"MIDSTREAM_{self.name.upper()}"


_LOOKS, _KEYS, _MODEL, _ENDPOINT = "Looks", "Keys", "Built-in model", "Endpoint"
_ANSWERS, _CARE = "Answers", "Care"

SPECS: Final = (
    Spec(
        "theme", "theme", Kind.CHOICE, _LOOKS,
        "Colours. Your own themes lie in the folder themes beside the configuration file.",
        at_once=True, none="the program's choice",
    ),
    Spec(
        "layout", "layout", Kind.CHOICE, _LOOKS,
        "How a diff is drawn: in one column, old and new side by side, or by the width there is.",
        LAYOUTS, at_once=True,
    ),
    Spec(
        "ascii", "ascii", Kind.BOOLEAN, _LOOKS,
        "Draw with ASCII characters only, for terminals and fonts that lack the others.",
    ),
    Spec(
        "keys", "keys.preset", Kind.CHOICE, _KEYS,
        "The keys to begin with; your own keys come on top of them.", KEY_PRESETS, at_once=True,
    ),
    Spec(
        "key_binds", "keys.bind", Kind.TABLE, _KEYS,
        "Your own keys by action, comma separated; an action with no keys is left to the palette.",
        at_once=True, none="none",
    ),
    Spec(
        "model", "model.folder", Kind.TEXT, _MODEL,
        "Model of the built-in server: a folder, or the name of an installed one.",
        none="the shipped model",
    ),
    Spec(
        "threads", "model.threads", Kind.NUMBER, _MODEL,
        "Threads of the built-in server.", none="as many as it finds best",
    ),
    Spec(
        "provider", "model.provider", Kind.TEXT, _MODEL,
        "Where the built-in server computes, such as cpu or cuda; `midstream doctor` says what "
        "works here.",
    ),
    Spec(
        "pace", "model.pace", Kind.NUMBER, _MODEL,
        "Tokens per second that the built-in server writes at most, to read along; 40 is a "
        "reading speed.", none="as fast as it can",
    ),
    Spec(
        "pacing", "model.pacing", Kind.TEXT, _MODEL,
        "Let the built-in server write as fast as wafer or gpu is simulated to, for a model of 70 "
        "billion parameters or the one named behind a colon (gpu:llama3.1-8b); replay shows whole "
        "answers at a wafer's speed; off does not.",
    ),
    Spec(
        "endpoint", "endpoint", Kind.CHOICE, _ENDPOINT,
        "Name of the endpoint to use instead of the built-in server.", none="the built-in server",
    ),
    Spec(
        "endpoint_url", "endpoint.url", Kind.TEXT, _ENDPOINT,
        "Instead of a name, the address of a Responses endpoint: wss://, ws://, https:// or "
        "http://.", none="none",
    ),
    Spec(
        "endpoint_model", "endpoint.model", Kind.TEXT, _ENDPOINT,
        "The model to ask the endpoint for.", none="the one of its profile",
    ),
    Spec(
        "endpoint_token_env", "endpoint.token_env", Kind.TEXT, _ENDPOINT,
        "The environment variable that holds the key of endpoint.url; keys are never in a file.",
        none="none",
    ),
    Spec(
        "effort", "effort", Kind.CHOICE, _ANSWERS,
        "What is done for a good answer: one pass (low), checks and a repair (medium), several "
        "candidates ranked (high, xhigh). A hosted model is told the effort instead; only there "
        "none, minimal and max are levels of their own.",
        SESSION_EFFORTS, at_once=True,
    ),
    Spec(
        "check_command", "check_command", Kind.TEXT, _ANSWERS,
        "The project's own quick test; it ranks candidates at high effort, in a throw-away copy "
        "of the folder.", none="none",
    ),
    Spec(
        "ai_comments", "ai_comments", Kind.BOOLEAN, _ANSWERS,
        "Carry out comments that begin or end with AI! when a file with one is saved.",
    ),
    Spec(
        "continuous", "continuous", Kind.BOOLEAN, _ANSWERS,
        "Propose the follow-on edits in the background whenever you save a change.",
    ),
    Spec(
        "guard", "guard", Kind.BOOLEAN, _CARE,
        "Watch what the model writes and stop it on dangerous lines.", at_once=True,
    ),
    Spec(
        "guard_levels", "guard", Kind.TABLE, _CARE,
        "The level of guard rules: halt stops the model, warn marks the hunk, off is silent.",
        none="as shipped",
    ),
    Spec(
        "attention", "attention", Kind.BOOLEAN, _CARE,
        "Note which hunks were on screen long enough to be read. It stays on this machine.",
        at_once=True,
    ),
    Spec(
        "commit_trailer", "commit_trailer", Kind.BOOLEAN, _CARE,
        "Say at the end of a commit message how much was accepted unread.", at_once=True,
    ),
    Spec(
        "journal", "journal", Kind.BOOLEAN, _CARE,
        "Keep a journal of each session, so that it can be taken up again.",
    ),
)  # fmt: skip
SPEC_BY_NAME: Final[Mapping[str, Spec]] = {spec.name: spec for spec in SPECS}


@dataclass(frozen=True, slots=True)
class Traced:
    """A setting with where its value comes from.

    Attributes:
        spec: The setting.
        value: What holds.
        source: The place that gave it.
        where: The name of the place.
        steps: Every place that sets it, in order, with its value.
    """

    spec: Spec
    value: object
    source: Source
    where: str
    steps: tuple[tuple[Source, str, object], ...]


def trace(
    root: Path | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> list[Traced]:
    """Every setting with its value and its source.

    Args:
        root: The opened folder.
        flags: Fields that the command line sets, with their values.
        environ: The environment.

    Raises:
        UsageError: A file cannot be read, or holds something that is not known.
    """
    layers = setting_layers(root, environ=environ)
    flags = flags or {}
    traced: list[Traced] = []
    for spec in SPECS:
        steps: list[tuple[Source, str, object]] = []
        for layer in layers:
            if spec.name in layer.given or layer.source is Source.DEFAULT:
                where = spec.variable if layer.source is Source.ENVIRONMENT else layer.where
                steps.append((layer.source, where, getattr(layer.settings, spec.name)))
        if spec.name in flags:
            steps.append((Source.FLAG, "", flags[spec.name]))
        value = getattr(layers[-1].settings, spec.name)
        if spec.name in flags:
            value = flags[spec.name]
        source, where, last = steps[-1]
        if last != value:
            # Choosing an endpoint clears what an earlier place said about another one.
            source, where = layers[-1].source, layers[-1].where
        traced.append(Traced(spec, value, source, where, tuple(steps)))
    return traced


def overruled(item: Traced) -> str:
    """Which place wins over the person's file, without a full stop; ``""`` if none does."""
    if item.source in (Source.DEFAULT, Source.USER):
        return ""
    places = {
        Source.PROJECT: "the folder's own file",
        Source.FOLDER: "your table for this folder",
        Source.ENVIRONMENT: item.spec.variable,
        Source.FLAG: "the command line",
    }
    return f"{places[item.source]} says {spelled(item.spec, item.value)} here, and that wins"


def changed_fields(before: Settings, after: Settings) -> dict[str, object]:
    """Fields in which two settings differ, with the later values."""
    return {
        spec.name: getattr(after, spec.name)
        for spec in SPECS
        if getattr(before, spec.name) != getattr(after, spec.name)
    }


def spelled(spec: Spec, value: object) -> str:
    """A value as people read it."""
    if value is None or value == "" or value == ():
        return spec.none or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        pairs = cast("tuple[tuple[str, str], ...]", value)
        return (
            f"{len(pairs)} of your own"
            if len(pairs) > 2
            else ", ".join(f"{name} = {text}" for name, text in pairs)
        )
    return str(value)


def as_toml(spec: Spec, value: object) -> str:
    """The line that sets a value in the file."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{spec.key} = {json.dumps(value, default=str, ensure_ascii=False)}"
