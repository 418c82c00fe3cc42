"""The models to choose from: installed folders for the built-in server, and endpoints.

Knows their facts and what choosing one means for the settings; it opens no connection, and of a
model folder it reads nothing but its small text files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from midstream.errors import UnavailableError, UsageError
from midstream.guard.secrets import sensitive_part
from midstream.pairing.models.lists import KeptList, Lists, configured, found_engines
from midstream.resources import (
    MAX_CONFIG_BYTES,
    config_path,
    default_model,
    find_model,
    model_places,
    models_dir,
    read_json,
    read_toml,
)
from midstream.responses.catalogue import ListedModel
from midstream.responses.dialect import EFFORTS, kind_of
from midstream.responses.profiles import BUILT_IN, Price, Profile
from midstream.settings import OWN_EFFORTS, SESSION_EFFORTS, Settings, change_file

MANY_FILES: Final = 4
"""With open hunks in at least this many files, work counts as spread over many files."""


_FREE: Final = Price(0.0, 0.0, 0.0)
"""On this machine."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model that can be used. What is ``None`` or empty is not known.

    Attributes:
        id: Tells it from the others: ``built-in:PATH``, ``endpoint:NAME``, or ``endpoint:NAME#ID``
            for a model that the endpoint lists.
        name: The model's name.
        title: A few words about it.
        endpoint: Name of the endpoint, ``built-in`` for a folder.
        kind: Whose server it is.
        address: Where that is: an address or a folder.
        context: Tokens that it reads and writes at most.
        price: What its tokens cost; a model on this machine costs nothing.
        edit_format: How it is asked to write edits.
        efforts: Efforts to offer, least first.
        languages: Languages that it was trained for; empty for any.
        key: What is known about its key: ``set``, ``missing``, ``keyring``, or ``""`` for none
            needed.
        key_name: The variable or the keyring's service.
        size: Bytes of a folder's graph.
        profile: The endpoint and model that choosing it means; ``None`` for a folder.
        group: Heading that it stands under: models of a list stand under the one it came from.
    """

    id: str
    name: str
    title: str
    endpoint: str
    kind: str
    address: str
    context: int | None = None
    price: Price | None = None
    edit_format: str | None = None
    efforts: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    key: str = ""
    key_name: str = ""
    size: int | None = None
    profile: Profile | None = None
    group: str = ""

    @property
    def here(self) -> bool:
        """Whether the built-in server runs it."""
        return self.endpoint == BUILT_IN

    @property
    def lacking(self) -> bool:
        """Whether its endpoint cannot be asked yet, for want of a key or of a model's name."""
        profile = self.profile
        nameless = profile is not None and profile.dialect.hosted and not profile.model
        return self.key == "missing" or nameless


def model_choices(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    lists: Lists = MappingProxyType({}),
) -> list[ModelChoice]:
    """Every model that is installed, configured, or in a kept list (blocking); folders first."""
    folders = [path for place in model_places() if place.is_dir() for path in place.iterdir()]
    if settings.model is not None:
        folders.append(find_model(settings.model))
    seen: dict[Path, ModelChoice] = {}
    for folder in sorted(folders, key=lambda path: path.name):
        real = Path(os.path.realpath(folder))  # A loop of links is no error here.
        if real not in seen and (choice := _of_folder(folder)) is not None:
            seen[real] = choice
    profiles = configured(settings)
    found = [*seen.values(), *(_of_profile(profile, environ) for profile in profiles)]
    for profile in profiles:
        if (kept := lists.get(profile.url)) is not None:
            found += _of_list(profile, kept, environ)
    for profile, kept in found_engines(settings, lists):
        found += _of_list(profile, kept, environ)
    return found


def _of_list(profile: Profile, kept: KeptList, environ: Mapping[str, str]) -> list[ModelChoice]:
    """The models that an endpoint has beside the configured one."""
    group = f"{profile.name or profile.url}, {'found here, ' if kept.engine else ''}"
    group += f"asked {_ago(time.time() - kept.at)}"
    choices: list[ModelChoice] = []
    for model in kept.models:
        if model.id != profile.model:
            own = replace(model, price=model.price or _FREE) if kept.engine else model
            choices.append(listed_choice(profile, own, environ, group=group))
    return choices


def listed_choice(
    profile: Profile, model: ListedModel, environ: Mapping[str, str] = os.environ, *, group: str
) -> ModelChoice:
    """A model that an endpoint lists; ``group`` is the heading that it stands under."""
    own = replace(profile, model=model.id, context=model.context, price=model.price)
    choice = _of_profile(own, environ)
    return replace(choice, id=f"{choice.id}#{model.id}", group=group)


def _ago(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if (count := int(seconds // length)) > 0:
            return f"{count} {unit}{'s' * (count != 1)} ago"
    return "just now"


def of_folder(text: str) -> ModelChoice | None:
    """The model of a folder that a person names by its path (blocking); ``None``: it is no path.

    Raises:
        UsageError: There is no model at that path.
    """
    if not text.startswith(("/", "~", ".")):
        return None
    try:
        choice = _of_folder(Path(text).expanduser().absolute())
    except (OSError, RuntimeError, ValueError):  # Too long, an unknown user, a null byte.
        choice = None
    if choice is None:
        raise UsageError(f"{text} is not a model folder: it has no ONNX file.")
    return choice


def _of_folder(folder: Path) -> ModelChoice | None:
    facts = _table(folder / "midstream.toml")
    config = _table(folder / "genai_config.json")
    graphs = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    if not graphs:
        return None
    named: object = config.get("model")
    model = cast("dict[str, Any]", named) if isinstance(named, dict) else {}
    languages: object = facts.get("languages")
    weights = [path.stat().st_size for path in folder.glob("*.onnx*") if path.is_file()]
    return ModelChoice(
        f"{BUILT_IN}:{folder}",
        BUILT_IN if folder.parent == models_dir() else str(facts.get("name") or folder.name),
        str(facts.get("title") or ""),
        BUILT_IN,
        "folder",
        str(folder),
        model.get("context_length") if isinstance(model.get("context_length"), int) else None,
        _FREE,
        str(facts.get("edit_format") or "region"),
        OWN_EFFORTS,
        tuple(map(str, cast("list[object]", languages))) if isinstance(languages, list) else (),
        size=sum(weights) or None,
    )


def _table(path: Path) -> dict[str, Any]:
    """What a small TOML or JSON file holds, nothing if it cannot be read."""
    try:
        value = read_toml(path) if path.suffix == ".toml" else read_json(path, MAX_CONFIG_BYTES)
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def efforts_of(profile: Profile | None) -> tuple[str, ...]:
    """The efforts to offer, least first: an endpoint's, or without one the built-in server's.

    A profile that names none leaves all of them: not knowing which its model takes does
    not mean that it takes none.
    """
    if profile is None:
        return OWN_EFFORTS
    if profile.dialect.midstream:
        return tuple(e for e in OWN_EFFORTS if e == "auto" or e in profile.efforts)
    return tuple(e for e in SESSION_EFFORTS if e == "auto" or e in (profile.efforts or EFFORTS))


def _of_profile(profile: Profile, environ: Mapping[str, str]) -> ModelChoice:
    has_key = profile.has_key(environ)
    key = "set" if has_key else "missing" if has_key is False else ""
    if has_key is None and profile.keyring is not None:
        key = "keyring"
    return ModelChoice(
        f"endpoint:{profile.name}",
        profile.model or ("no model yet" if profile.dialect.hosted else "the server's default"),
        "",
        profile.name or "address",
        profile.kind,
        profile.url,
        profile.context,
        profile.price,
        profile.edit_format,
        efforts_of(profile),
        key=key,
        key_name=profile.key_env or profile.keyring or "",
        profile=profile,
    )


def chosen_id(settings: Settings) -> str:
    """The id of the model that settings name."""
    if settings.profile is not None:
        return f"endpoint:{settings.profile.name}"
    try:
        folder = default_model() if settings.model is None else find_model(settings.model)
    except UnavailableError:
        return ""
    return f"{BUILT_IN}:{folder}"


def with_choice(settings: Settings, choice: ModelChoice) -> Settings:
    """The settings with another model."""
    if choice.here:
        folder = Path(choice.address)
        chosen = None if _is_default(folder) else folder
        return replace(settings.with_endpoint(BUILT_IN, "model"), model=chosen)
    profile = choice.profile
    assert profile is not None
    if not profile.name:
        return replace(settings, endpoint_model=profile.model)
    known = {found.name: found for found in settings.endpoints}
    profiles = tuple({**known, profile.name: profile}.values())
    return replace(settings, endpoints=profiles).with_endpoint(profile.name, "model")


def keep_choice(choice: ModelChoice) -> None:
    """Write a model to the user's configuration file (blocking).

    Raises:
        UserError: The file cannot be written, or is not valid.
    """
    if choice.profile is not None:
        change_file(config_path(), _profile_changes(choice.profile, listed=bool(choice.group)))
        return
    folder = Path(choice.address)
    installed = any(folder.parent == place for place in model_places())
    model = None if _is_default(folder) else folder.name if installed else str(folder)
    change_file(config_path(), {("endpoint",): None, ("model", "folder"): model})


def keep_endpoint(profile: Profile) -> None:
    """Write an endpoint whose model may not be known yet, without choosing it (blocking).

    Raises:
        UserError: The file cannot be written, or is not valid.
    """
    changes = _profile_changes(profile, listed=True)
    del changes["endpoint",]
    change_file(config_path(), {key: value or None for key, value in changes.items()})


def _profile_changes(profile: Profile, *, listed: bool) -> dict[tuple[str, ...], object]:
    """What to write for an endpoint; one from a list also gets its model."""
    if not profile.name:
        changes: dict[tuple[str, ...], object] = {("endpoint", "url"): profile.url}
        return {**changes, ("endpoint", "model"): profile.model} if listed else changes
    values: dict[str, object] = {}
    if listed:
        price = profile.price
        # Context and price in the file were those of another model.
        values = {
            "url": profile.url,
            "model": profile.model,
            "context": profile.context,
            "price_in": price and price.input,
            "price_out": price and price.output,
            "price_cached": price and price.cached,
        }
        if profile.kind != kind_of(profile.url):  # An engine, which no address tells.
            values["kind"] = profile.kind
        if profile.keyring is not None or profile.key_env != profile.dialect.key_env:
            values |= {"key_env": profile.key_env, "keyring": profile.keyring}
    table = {("endpoints", profile.name, key): value for key, value in values.items()}
    return {**table, ("endpoint",): profile.name}


def _is_default(folder: Path) -> bool:
    try:
        return folder.resolve() == default_model().resolve()
    except UnavailableError:
        return False


def advice(path: str, waiting: Sequence[str], *, here: bool) -> str:
    """A sentence when another kind of model would suit the work better, ``""`` otherwise.

    Args:
        path: The open file, ``""`` for none.
        waiting: Files with hunks of this session.
        here: Whether the built-in server answers.
    """
    if part := sensitive_part(path):
        wanted = "use a stronger model for it, and" if here else "a stronger model suits it;"
        return f'{path} looks security-sensitive ("{part}" in its path): {wanted} review carefully.'
    if len(waiting) >= MANY_FILES and here:
        return f"This session is in {len(waiting)} files: a larger model keeps track of more."
    if path and not here and len(waiting) <= 1:
        return (
            "For quick edits in one file, a fast model on this machine answers sooner, at no cost."
        )
    return ""
