"""Options and output that several commands share."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO

from midstream.settings import Settings, check_setting

REPLAY_HELP: Final = (
    "answer from a script instead of a model: a JSON list of entries such as "
    '{"match": "rename", "edit": [["old", "new"]], "rate": 300} or {"match": "", "text": "…"}'
)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options that choose model and server, overriding the settings."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="NAME|FOLDER", help="a model; see `midstream models`")
    group.add_argument(
        "--endpoint",
        metavar="NAME|URL",
        help="use this model server instead of the built-in one: the name of a configured "
        "endpoint or of a known one, such as openai, anthropic or ollama; an address; or a host",
    )
    group.add_argument(
        "--transport",
        metavar="auto|websocket|sse|chat|messages",
        help="the API of that server: OpenAI's Responses over a WebSocket or over HTTP (sse), Chat "
        "Completions, Anthropic's Messages, or whichever it has (auto)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads of the built-in model")
    group.add_argument(
        "--provider",
        metavar="NAME",
        help="where the built-in model runs: cpu, cuda, ...; `midstream doctor` lists what works",
    )
    group.add_argument(
        "--pace",
        type=float,
        metavar="N",
        help="write at most N tokens per second; 20 is reading speed",
    )
    group.add_argument(
        "--pacing",
        metavar="off|wafer|gpu|replay[:MODEL]",
        help="answer at the simulated speed of a wafer, or of GPUs, that runs a 70B model or "
        "MODEL; replay shows whole answers at a wafer's speed",
    )
    group.add_argument("--replay", type=Path, metavar="SCRIPT", help=REPLAY_HELP)


def with_options(settings: Settings, options: argparse.Namespace) -> Settings:
    """The settings, overridden by the command line.

    Raises:
        UsageError: A value is out of range.
    """
    changes: dict[str, object] = {}
    # A token goes to the endpoint it was configured for and nowhere else.
    if options.endpoint is not None and options.endpoint != settings.endpoint_url:
        settings = settings.with_endpoint(options.endpoint, "--endpoint")
        if settings.endpoint_url is not None:
            changes["endpoint_token_env"] = os.environ.get("MIDSTREAM_ENDPOINT_TOKEN_ENV")
    if options.model is not None:
        name = "endpoint_model" if settings.profile is not None else "model"
        changes[name] = check_setting(name, options.model, "--model")
    if options.transport is not None:
        checked = check_setting("endpoint_transport", options.transport, "--transport")
        changes["endpoint_transport"] = checked
    for name in ("threads", "provider", "pace", "pacing"):
        if (value := getattr(options, name)) is not None:
            changes[name] = check_setting(name, value, f"--{name}")
    return replace(settings, **changes)  # type: ignore[arg-type]


def print_json(value: object) -> None:
    """Print a JSON object on one line and flush; bytes of a name that are not UTF-8 are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    print(text.encode("utf-8", "backslashreplace").decode(), flush=True)


def colours() -> bool:
    """Whether to colour standard output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def wrapped(text: str, stream: TextIO | None = None) -> str:
    """Sentences broken between words for a terminal; as they are for anything else.

    What stands in backticks stays in one piece: it is there to be copied.
    """
    if not (stream or sys.stdout).isatty():
        return text
    columns = shutil.get_terminal_size().columns
    whole = re.sub("`[^`\n]*`", lambda found: found[0].replace(" ", "\0"), text)
    lines = (
        textwrap.wrap(line, columns, break_long_words=False, break_on_hyphens=False) or [""]
        for line in whole.split("\n")
    )
    return "\n".join(itertools.chain.from_iterable(lines)).replace("\0", " ")


def printable(text: str) -> str:
    """Text without control characters other than tab and newline, for a terminal."""
    return "".join(c if c.isprintable() or c in "\t\n" else f"\\x{ord(c):02x}" for c in text)
