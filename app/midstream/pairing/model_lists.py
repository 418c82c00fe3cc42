"""Lists of models by endpoint, cached in the state folder.

Endpoints are only asked on request: a screen shows the cached lists first.  Keys are not cached.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

import msgspec

from midstream.errors import UnavailableError, UserError
from midstream.responses.catalogue import ListedModel, list_models
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from midstream.workspace import atomic
from midstream.workspace.paths import state_dir

FILE: Final = "model-lists.json"

ENGINES: Final = (
    ("ollama", 11434),
    ("lm-studio", 1234),
    ("vllm", 8000),
    ("llama-cpp", 8080),
    ("sglang", 30000),
)
"""Engines that may run on this machine, and their default ports."""

_OWNERS: Final = {
    "library": "ollama",
    "vllm": "vllm",
    "llamacpp": "llama-cpp",
    "sglang": "sglang",
    "organization_owner": "lm-studio",
    "midstream": "midstream",
}
"""Engines by the owner that they report for their models, since ports are shared."""

_ENGINE_SECONDS: Final = 1.5
_MOST_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class KeptList:
    """What one endpoint answered.

    Attributes:
        models: Its models.
        at: When, in seconds since 1970.
        engine: Name of a profile for it, if it is an engine that is not configured.
    """

    models: tuple[ListedModel, ...]
    at: float
    engine: str = ""


Lists = Mapping[str, KeptList]
"""Cached lists by address."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Result of asking every endpoint.

    Attributes:
        lists: All cached lists, including the new ones.
        found: Endpoints that answered, with the number of their models.
        troubles: An error message for each one that did not.
    """

    lists: Lists
    found: tuple[tuple[str, int], ...] = ()
    troubles: tuple[str, ...] = field(default=())

    @property
    def words(self) -> str:
        """The result as a message."""
        told = [f"{name} has {count} model{'s' * (count != 1)}" for name, count in self.found]
        said = "; ".join(told) if told else "No endpoint and no engine on this machine has answered"
        return " ".join((f"{said}.", *self.troubles))


def kept_lists() -> dict[str, KeptList]:
    """The cached lists (blocking); none if the file is missing or damaged."""
    try:
        return msgspec.json.decode((state_dir() / FILE).read_bytes(), type=dict[str, KeptList])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}


def keep_lists(lists: Lists) -> None:
    """Cache lists (blocking); a failed write is ignored."""
    newest = sorted(lists.items(), key=lambda item: -item[1].at)[:_MOST_KEPT]
    with contextlib.suppress(OSError):
        atomic.overwrite(state_dir() / FILE, msgspec.json.encode(dict(newest)))


def ask_everybody(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    *,
    engines: Sequence[tuple[str, int]] = ENGINES,
) -> Asked:
    """Ask all configured endpoints, and engines on this machine, for their models (blocking)."""
    profiles = configured(settings)
    taken = {_place(profile.url) for profile in profiles}
    unknown = [(name, port) for name, port in engines if ("127.0.0.1", port) not in taken]
    lists = kept_lists()
    found: list[tuple[str, int]] = []
    troubles: list[str] = []
    with ThreadPoolExecutor(max(1, len(profiles) + len(unknown))) as pool:
        answers = [(p, pool.submit(_ask, p, environ)) for p in profiles]
        others = [(n, port, pool.submit(_look, n, port)) for n, port in unknown]
        for profile, answer in answers:
            called = profile.name or profile.url
            try:
                models = answer.result()
            except UserError as error:
                troubles.append(f"{called}: {error}")
                continue
            lists[profile.url] = KeptList(models, time.time())
            found.append((called, len(models)))
        names = {profile.name for profile in profiles}
        for name, port, look in others:
            url = _engine_url(port)
            models = look.result()
            if models is None:
                lists.pop(url, None)
                continue
            engine = _free_name(_OWNERS.get(models[0].owner, name) if models else name, names)
            names.add(engine)
            lists[url] = KeptList(models, time.time(), engine)
            found.append((engine, len(models)))
    keep_lists(lists)
    return Asked(lists, tuple(found), tuple(troubles))


def configured(settings: Settings) -> list[Profile]:
    """The configured endpoints, including an address without a name."""
    profiles = list(settings.endpoints)
    if settings.endpoint is None and settings.profile is not None:
        profiles.append(settings.profile)
    return profiles


def found_engines(settings: Settings, lists: Lists) -> list[tuple[Profile, KeptList]]:
    """Profiles for the engines that were found and are not configured."""
    taken = {_place(profile.url) for profile in configured(settings)}
    return [
        (Profile(kept.engine, "custom", url), kept)
        for url, kept in lists.items()
        if kept.engine and _place(url) not in taken
    ]


def _ask(profile: Profile, environ: Mapping[str, str]) -> tuple[ListedModel, ...]:
    # Listing models needs no model name.
    return list_models(replace(profile, model=profile.model or "any").endpoint(environ))


def _look(name: str, port: int) -> tuple[ListedModel, ...] | None:
    """The models of an engine on a port, ``None`` where none answers."""
    endpoint = Profile(name, "custom", _engine_url(port)).endpoint({})
    try:
        return list_models(endpoint, seconds=_ENGINE_SECONDS)
    except UnavailableError:
        return None


def _engine_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def _place(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    with contextlib.suppress(ValueError):
        return ("127.0.0.1" if host in ("localhost", "::1") else host, parts.port)
    return (host, None)


def _free_name(name: str, taken: set[str]) -> str:
    name = re.sub(r"[^a-z0-9-]", "-", name.lower())
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(free for free in names if free not in taken)
