"""Lists of models by endpoint, cached in the state folder.

Endpoints are only asked on request: a screen shows the cached lists first.  Keys are not cached.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

import msgspec

from midstream.errors import UnavailableError, UserError
from midstream.resources import read_small
from midstream.responses.catalogue import ListedModel, get_json, list_models
from midstream.responses.dialect import DIALECTS, EndpointKind
from midstream.responses.endpoint import Endpoint
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from midstream.workspace import atomic
from midstream.workspace.paths import state_dir

FILE: Final = "model-lists.json"

PORTS: Final = (11434, 1234, 8000, 8080, 30000, 4000, 5000, 5001)
"""Where engines on this machine listen unless told otherwise. Several share a port, so an engine is
named by what it says itself.
"""

_OWNERS: Final = {
    "library": "ollama",
    "vllm": "vllm",
    "llamacpp": "llama-cpp",
    "sglang": "sglang",
    "organization_owner": "lm-studio",
    "midstream": "midstream",
}
"""Engines by the owner that they report for their models."""

_SIGNS: Final = (
    ("ollama", "/api/version", "version"),
    ("llama-cpp", "/props", "default_generation_settings"),
    ("lm-studio", "/api/v0/models", "data"),
    ("sglang", "/get_model_info", "model_path"),
    ("koboldcpp", "/api/extra/version", "result"),
    ("litellm", "/health/readiness", "litellm_version"),
    ("vllm", "/version", "version"),
)
"""Engines, an address that only they have, and a field of its answer."""

_ENGINE_SECONDS: Final = 1.5
"""How long an engine on this machine may take to answer."""
_MAX_KEPT: Final = 64
"""Lists that are kept, the newest."""


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
        ports: Ports of this machine on which an engine was looked for.
    """

    lists: Lists
    found: tuple[tuple[str, int], ...] = ()
    troubles: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The result as a message."""
        told = [f"{name} has {count} model{'s' * (count != 1)}" for name, count in self.found]
        said = "; ".join(told)
        if not told:
            ports = ", ".join(map(str, self.ports))
            said = f"No engine on this machine answers on the ports {ports}"
        return " ".join((f"{said}.", *self.troubles))


def kept_lists() -> dict[str, KeptList]:
    """The cached lists (blocking); none if the file is missing or damaged."""
    try:
        return msgspec.json.decode(read_small(state_dir() / FILE), type=dict[str, KeptList])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}


def keep_lists(lists: Lists) -> None:
    """Cache lists (blocking); a failed write is ignored."""
    newest = sorted(lists.items(), key=lambda item: -item[1].at)[:_MAX_KEPT]
    with contextlib.suppress(OSError):
        atomic.overwrite(state_dir() / FILE, msgspec.json.encode(dict(newest)))


def ask_everybody(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    *,
    here: bool = False,
    ports: Sequence[int] = PORTS,
) -> Asked:
    """Ask endpoints for their models (blocking).

    Args:
        settings: They configure endpoints.
        environ: Where keys may be.
        here: Ask only servers on this machine.
        ports: Where engines on this machine may listen.
    """
    profiles = [each for each in configured(settings) if each.loopback or not here]
    taken = {_place(profile.url) for profile in profiles}
    unknown = [port for port in ports if ("127.0.0.1", port) not in taken]
    lists = kept_lists()
    found: list[tuple[str, int]] = []
    troubles: list[str] = []
    with ThreadPoolExecutor(max(1, len(profiles) + len(unknown))) as pool:
        answers: list[tuple[Profile, Future[tuple[ListedModel, ...]]]] = []
        for profile in profiles:
            if profile.has_key(environ) is False:
                missing = f"{profile.name or profile.url}: {profile.key_env} is not set"
                troubles.append(f"{missing}; choosing it here asks for the key.")
            else:
                answers.append((profile, pool.submit(_ask, profile, environ)))
        others = [(port, pool.submit(_look, port)) for port in unknown]
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
        for port, look in others:
            url = _engine_url(port)
            looked = look.result()
            if looked is None:
                lists.pop(url, None)
                continue
            name, models = looked
            engine = free_name(name, names)
            names.add(engine)
            lists[url] = KeptList(models, time.time(), engine)
            found.append((engine, len(models)))
    keep_lists(lists)
    return Asked(lists, tuple(found), tuple(troubles), tuple(ports))


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
        (Profile(kept.engine, _kind(kept.engine), url), kept)
        for url, kept in lists.items()
        if kept.engine and _place(url) not in taken
    ]


def _kind(engine: str) -> EndpointKind:
    """The kind of an engine by its name, which has a number where there are several."""
    kinds: dict[str, EndpointKind] = {kind: kind for kind in DIALECTS}
    return kinds.get(re.sub(r"-\d+$", "", engine), "custom")


def _ask(profile: Profile, environ: Mapping[str, str]) -> tuple[ListedModel, ...]:
    # Listing models needs no model name.
    return list_models(replace(profile, model=profile.model or "any").endpoint(environ))


def _look(port: int) -> tuple[str, tuple[ListedModel, ...]] | None:
    """Name and models of the engine on a port, ``None`` where none answers."""
    try:
        models = list_models(_engine(_engine_url(port)), seconds=_ENGINE_SECONDS)
    except UnavailableError:
        return None
    owners = (_OWNERS.get(model.owner) for model in models)
    return next(filter(None, owners), None) or _asked_name(port), models


def _asked_name(port: int) -> str:
    """The name by which an engine calls itself, where its models do not reveal it."""
    root = _engine(f"http://127.0.0.1:{port}")
    for name, path, field_name in _SIGNS:
        with contextlib.suppress(UnavailableError):
            answer = get_json(root, path, seconds=_ENGINE_SECONDS)
            if isinstance(answer, dict) and field_name in answer:
                return name
    return f"engine-{port}"


def _engine(url: str) -> Endpoint:
    return Profile("", "custom", url).endpoint({})


def _engine_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def _place(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    with contextlib.suppress(ValueError):
        return ("127.0.0.1" if host in ("localhost", "::1") else host, parts.port)
    return (host, None)


def free_name(name: str, taken: Collection[str]) -> str:
    """A name for an endpoint that no other one has, made from ``name``."""
    name = re.sub(r"[^a-z0-9-]", "-", name.lower())
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(free for free in names if free not in taken)
