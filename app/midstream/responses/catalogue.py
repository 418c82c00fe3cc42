"""The models that an endpoint lists: one GET, bounded in time and size.

Every ``/v1/models`` has names. How many tokens a model reads and what it costs stand in different
fields with each server, and most leave them out. Nothing is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard, cast

import msgspec

from midstream.errors import UnavailableError
from midstream.responses.endpoint import Endpoint
from midstream.responses.profiles import Price

SECONDS: Final = 5.0
"""How long an endpoint may take to answer."""

_LIST: Final = "/models"
_MAX_BYTES: Final = 4_000_000
"""Bytes of an answer."""
_MAX_NAME_LENGTH: Final = 200
"""Characters of a model's name; a longer one is left out."""

_NOT_TEXT: Final = re.compile(
    r"embed|whisper|\btts\b|dall-e|image|moderation|realtime|transcribe|audio|speech|sora|rerank"
)
"""Names of models that write no text; hosted lists have many."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as an endpoint lists it. What is ``None`` or empty is not said.

    Attributes:
        id: What goes into ``model``.
        context: Tokens that it reads and writes at most.
        price: What its tokens cost.
        owner: Who is said to own it; local engines write their own name here.
    """

    id: str
    context: int | None = None
    price: Price | None = None
    owner: str = ""


class KeyRefusedError(UnavailableError):
    """The endpoint answers, and does not take the key, or wants one."""

    code = "key-refused"


class NoListError(UnavailableError):
    """The endpoint answers, and has no list of models."""

    code = "no-list"


def get_json(endpoint: Endpoint, path: str, *, seconds: float = SECONDS) -> object:
    """GET ``path`` below an endpoint's address (blocking); returns the JSON value.

    Redirects are not followed: the key is for this endpoint only.

    Raises:
        KeyRefusedError: It needs another key.
        NoListError: It has nothing there.
        UnavailableError: There is no answer, or none in JSON.
    """
    from midstream.responses.http import RefusedError, get

    try:
        return msgspec.json.decode(get(endpoint, path, seconds=seconds, most_bytes=_MAX_BYTES))
    except RefusedError as error:
        host, status = endpoint.host, f"HTTP {error.status}"
        # Gemini and xAI answer 400 to a wrong key, and nothing else of such a request can be wrong.
        if error.status in (400, 401, 403):
            if endpoint.token is None:
                raise KeyRefusedError(f"{host} wants a key, and none was sent ({status})") from None
            raise KeyRefusedError(f"{host} refused the key ({status})", "check it") from None
        said = f"{host} answers {status}"
        kind = NoListError if error.status in (404, 405, 501) else UnavailableError
        raise kind(said, "it may not offer this list") from None
    except OSError as error:
        why = error.strerror or str(error)  # without "[Errno -2]"
        raise UnavailableError(f"{endpoint.host} cannot be reached ({why}).") from None
    except OverflowError:
        raise UnavailableError(f"{endpoint.host} sent too long an answer.") from None
    except (msgspec.DecodeError, RecursionError):
        raise UnavailableError(f"{endpoint.host} did not answer in JSON.") from None


def list_models(endpoint: Endpoint, *, seconds: float = SECONDS) -> tuple[ListedModel, ...]:
    """The models of an endpoint that write text, by name (blocking).

    Raises:
        UnavailableError: It does not answer, or with something else than a list of models.
    """
    value = get_json(endpoint, _LIST, seconds=seconds)
    found = read_list(value)
    if found is None:
        raise NoListError(f"{endpoint.host} did not answer with a list of models.")
    return found


def check_key(endpoint: Endpoint) -> tuple[ListedModel, ...]:
    """The models of an endpoint that takes the key (blocking); no model is asked for anything.

    Raises:
        KeyRefusedError: It needs another key.
        NoListError: It has no list of models, so that the key is not known to be good.
        UnavailableError: It does not answer as a model server.
    """
    if (path := endpoint.dialect.key_path) != _LIST:
        get_json(endpoint, path)
    return list_models(endpoint)


def read_list(value: object) -> tuple[ListedModel, ...] | None:
    """The text models in an answer, by name; ``None`` if it is no list of models."""
    entries: object = value
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        entries = table.get("data", table.get("models"))
    if not isinstance(entries, list):
        return None
    models: dict[str, ListedModel] = {}
    for entry in cast("list[object]", entries)[:2_000]:
        if isinstance(entry, dict):
            fields = cast("dict[str, object]", entry)
            name: object = fields.get("id", fields.get("name"))
            if _is_name(name) and not _NOT_TEXT.search(name.lower()):
                models[name] = _read(name, fields)
    return tuple(models[name] for name in sorted(models))


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME_LENGTH and value.isprintable()


def _read(name: str, fields: Mapping[str, object]) -> ListedModel:
    owner: object = fields.get("owned_by")
    return ListedModel(
        name, _context(fields), _price(fields.get("pricing")), owner if _is_name(owner) else ""
    )


_CONTEXT: Final = (
    ("max_model_len",),  # vLLM, SGLang
    ("context_length",),  # gateways
    ("context_window",),
    ("max_context_length",),
    ("metadata", "context_length"),  # Midstream
    ("meta", "n_ctx"),
    ("meta", "n_ctx_train"),  # llama.cpp
)


def _context(fields: Mapping[str, object]) -> int | None:
    for way in _CONTEXT:
        value: object = fields
        for step in way:
            value = _table(value).get(step)
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 10**9:
            return number
    return None


def _table(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _price(value: object) -> Price | None:
    """Gateways state prices as text, in dollars per token."""
    given = _table(value)
    prompt, completion = _dollars(given.get("prompt")), _dollars(given.get("completion"))
    if prompt is None or completion is None:
        return None
    cached = _dollars(given.get("input_cache_read"))
    return Price(prompt, completion, prompt if cached is None else cached)


def _dollars(value: object) -> float | None:
    """Convert dollars per token to dollars per million tokens."""
    try:
        dollars = float(value) * 1e6 if isinstance(value, str | int | float) else -1.0
    except ValueError:
        return None
    return round(dollars, 6) if 0 <= dollars < 1e6 else None
