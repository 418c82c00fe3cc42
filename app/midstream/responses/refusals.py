"""Explains an HTTP refusal of a model server: one sentence with its message and a way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from midstream.responses.endpoint import Endpoint
from midstream.responses.events import WireError

_MAX_QUOTE_LENGTH: Final = 300
_MIN_KEY_LENGTH: Final = 8
"""Shorter ones are no secrets, and parts of words."""
_NO_ROUTE: Final = frozenset({404, 405, 501})
_any_decoder = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer that is no response.

    Attributes:
        endpoint: Who answered.
        status: The HTTP status.
        body: The beginning of what came with it.
        asked: The APIs that were asked for in vain, as a person calls them.
        retry_after: Seconds until it wants to be asked again, if it says so.
    """

    endpoint: Endpoint
    status: int
    body: bytes = b""
    asked: tuple[str, ...] = ("Responses",)
    retry_after: float | None = None

    @property
    def error(self) -> WireError:
        """The error as a WebSocket would have brought it, with a sentence for a person."""
        given = _error(self.body)
        if given is not None and given.message and not (self._is_of_key or self.lacks_route):
            said = self._hidden(given.message)
            if self.status == 429:
                said = f"{said.rstrip('.')}.{self._later}"
            return msgspec.structs.replace(given, message=said)
        sentence = self._sentence()
        return WireError(given.code if given is not None else None, sentence)

    def upgrade_sentence(self) -> str:
        """Why a WebSocket could not be opened."""
        where, status, quote = self._where, self.status, self._quote
        if status == 401:
            return self._sentence()
        if status in (429, 503):
            return f"{where} is overloaded (HTTP {status}{quote}); try again shortly."
        return f"{where} did not open a WebSocket (HTTP {status}{quote})."

    def _sentence(self) -> str:
        where, status, quote = self._where, self.status, self._quote
        if self._is_of_key:
            return f"{where} refused the key (HTTP {status}{quote}); check the endpoint's token."
        if self.lacks_route:
            return self._without_api()
        if status == 429:
            return f"{where} has received too many requests (HTTP {status}{quote}).{self._later}"
        sentence = f"{where} refused the request (HTTP {status}{quote})"
        if self.endpoint.model:
            return f"{sentence}."
        return f"{sentence}; no model is named, which it may need: pass --model NAME."

    def _without_api(self) -> str:
        url = self.endpoint.http_url
        *others, last = self.asked
        names = f"{', '.join(others)} or {last}" if others else last
        said = f"{self._where} has no {names} API below {url} (HTTP {self.status}{self._quote})"
        if not self.endpoint.path:
            return f"{said}; the address may lack its version: try {url}/v1."
        if self.endpoint.transport != "auto":
            return f"{said}; it may have another one: try `--transport auto`."
        return f"{said}; check the address."

    @property
    def _later(self) -> str:
        seconds = self.retry_after
        return "" if seconds is None else f" Try again in {max(1, round(seconds))} s."

    @property
    def _where(self) -> str:
        return f"The model server at {self.endpoint.host} ({self.endpoint.url})"

    @property
    def _is_of_key(self) -> bool:
        return self.status in (401, 403)

    @property
    def lacks_route(self) -> bool:
        """Whether the address does not exist, and not just the model or an earlier response."""
        said = self._said.lower()
        if self.status == 200:  # LM Studio's answer where it has nothing.
            return "unexpected endpoint" in said
        if self.status not in _NO_ROUTE:
            return False
        return "model" not in said and "response with id" not in said

    @property
    def _said(self) -> str:
        """What the body says, on one line; "" if it is a page of a browser or nothing."""
        text = " ".join(_text(self.body).split())
        text = "".join(character for character in text if character.isprintable())
        return "" if text.startswith("<") else self._hidden(text)

    @property
    def _quote(self) -> str:
        said = self._said
        if len(said) > _MAX_QUOTE_LENGTH:
            said = f"{said[:_MAX_QUOTE_LENGTH]}…"
        return f': "{said}"' if said else ""

    def _hidden(self, text: str) -> str:
        """Text without the key, which some servers repeat."""
        token = self.endpoint.token
        return text.replace(token, "(key)") if token and len(token) >= _MIN_KEY_LENGTH else text


def _error(body: bytes) -> WireError | None:
    try:
        return msgspec.json.decode(body, type=_ErrorBody).error
    except ValueError:
        return None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: WireError | None = None


def _text(body: bytes) -> str:
    """The message in an error body; servers nest it in many ways."""
    try:
        value = _any_decoder.decode(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
    for _ in range(4):
        if isinstance(value, list) and value:
            value = cast("list[Any]", value)[0]
        if not isinstance(value, dict):
            break
        fields = cast("dict[str, Any]", value)
        known = (fields[name] for name in ("error", "message", "detail", "msg") if fields.get(name))
        value = next(known, None)
    return value if isinstance(value, str) else ""
