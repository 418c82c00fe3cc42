"""Explains an HTTP refusal of a model server: one sentence with its message and a way out."""

from __future__ import annotations

import errno
import html
import math
import re
from dataclasses import dataclass
from typing import Final, cast

from midstream.responses.endpoint import Endpoint
from midstream.responses.events import WireError
from midstream.responses.liberal import loads

_MAX_QUOTE_LENGTH: Final = 300
"""Characters of the server's own words that are quoted."""
_MIN_KEY_LENGTH: Final = 8
"""Characters of a key; shorter ones are no secrets, and parts of words."""
_REFUSED: Final = f"[Errno {errno.ECONNREFUSED}]"
_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
"""Python's prefix of the operating system's message."""
_MAX_DEPTH: Final = 6
"""Levels of JSON around a message; gateways wrap the errors of others, as text, too."""
_NO_ROUTE: Final = frozenset({404, 405, 501})
_ABOUT_MORE: Final = re.compile(
    r"model|deployment|response with id|endpoints found|providers?\b|quota|account|organi[sz]ation",
    re.IGNORECASE,
)
"""Subjects of a 404 that is not about the address."""
_NO_MODEL: Final = re.compile(
    r"\bmodel\b.*(?:not found|not exist|no such|unknown|invalid)|(?:no such|unknown) model\b"
    r"|deployment.?not.?found|no such deployment",
    re.IGNORECASE,
)
_USED_UP: Final = re.compile(r"insufficient_quota|billing|credit|payment|out of funds", re.I)
_LATER: Final = re.compile(r'(?:retry|try again) (?:in|after) (\d+(?:\.\d+)?) ?s|"(\d+)s"', re.I)
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer that is no response.

    Attributes:
        endpoint: Who answered.
        status: The HTTP status.
        body: The beginning of what came with it.
        asked: The APIs that were asked for in vain, as a person calls them.
        retry_after: Seconds until it wants to be asked again, if it says so.
        location: Where it redirects to, if it does.
    """

    endpoint: Endpoint
    status: int
    body: bytes = b""
    asked: tuple[str, ...] = ("Responses",)
    retry_after: float | None = None
    location: str = ""

    @property
    def error(self) -> WireError:
        """The error as a WebSocket would have brought it, with a sentence for a person."""
        given = self._given
        return WireError(given.code if given is not None else None, self._sentence())

    def upgrade_sentence(self) -> str:
        """Why a WebSocket could not be opened."""
        where, status, quote = self._where, self.status, self._quote
        if status == 401:
            return self._sentence()
        if status in (429, 503):
            return f"{where} is overloaded (HTTP {status}{quote}); try again shortly."
        return f"{where} did not open a WebSocket (HTTP {status}{quote})."

    @property
    def lacks_route(self) -> bool:
        """Whether the address does not exist, and not just the model or an earlier response."""
        if self.status == 200:  # LM Studio's answer where it has nothing.
            return "unexpected endpoint" in self.said.lower()
        if self.status not in _NO_ROUTE:
            return False
        return not _ABOUT_MORE.search(f"{self._code} {self.said}")

    @property
    def is_page(self) -> bool:
        """Whether the body is a page for a browser."""
        return self.body.lstrip()[:1] == b"<"

    @property
    def is_used_up(self) -> bool:
        """Whether the paid quota is used up, so that asking again is of no use."""
        given = self._given
        code = f"{given.code} {given.type}" if given is not None else ""
        return self.status in (402, 429) and bool(_USED_UP.search(f"{code} {self.said}"))

    @property
    def is_loading(self) -> bool:
        """Whether it takes requests as soon as it has loaded the model."""
        return self.status == 503 and "loading" in self.said.lower()

    @property
    def pause(self) -> float | None:
        """Seconds until it wants to be asked again, in a header or in words."""
        seconds = self.retry_after
        if seconds is None and self.status == 429:
            found = _LATER.search(self.body.decode("utf-8", "replace"))
            seconds = None if found is None else float(found[1] or found[2])
        return seconds if seconds is not None and math.isfinite(seconds) else None

    @property
    def said(self) -> str:
        """The message of the body, on one line, or the words of a page."""
        if self.is_page:
            page = self.body.decode("utf-8", "replace")
            title = _TITLE.search(page)
            text = html.unescape(_UNSEEN.sub(" ", title[1] if title is not None else page))
        elif (given := self._given) is not None:
            text = given.message
        else:
            text = self.body.decode("utf-8", "replace")
            text = "" if text.lstrip().startswith(("{", "[")) else text
        text = "".join(c for c in " ".join(text.split()) if c.isprintable())
        token = self.endpoint.token  # Some servers repeat it.
        return text.replace(token, "(key)") if token and len(token) >= _MIN_KEY_LENGTH else text

    def _sentence(self) -> str:
        where, status, quote = self._where, self.status, self._quote
        if status == 401 and self.endpoint.token is None:
            return (
                f"{where} wants a key, and none was sent (HTTP 401{quote}); type it on the models "
                "page, or name the variable that holds it in MIDSTREAM_ENDPOINT_TOKEN_ENV (in "
                "key_env for an endpoint of your settings)."
            )
        if status == 401 or (status == 403 and self._given is not None):
            return f"{where} refused the key (HTTP {status}{quote}); check the endpoint's key."
        if status == 403:
            return (
                f"{where} is closed to this request (HTTP 403{quote}); a firewall or a proxy in "
                "front of it may block it, whatever the key is."
            )
        if 300 <= status < 400:
            to = f" to {self.location}" if self.location else ""
            return (
                f"{where} redirects{to} (HTTP {status}), and the key is for this address alone; "
                "name that address if you trust it."
            )
        if self.lacks_route:
            return self._without_api()
        if status == 200 and self.is_page:
            return (
                f"{where} answered with a web page (HTTP 200{quote}); check the address, and any "
                "proxy or login in front of it."
            )
        if self.is_used_up:
            return (
                f"{where} refused the request (HTTP {status}{quote}); "
                "check the plan and the billing of its account."
            )
        if status == 429:
            pause = self.pause
            later = "" if pause is None else f" Try again in {max(1, round(pause))} s."
            return f"{where} has received too many requests (HTTP 429{quote}).{later}"
        sentence = f"{where} refused the request (HTTP {status}{quote})"
        if not self.endpoint.model:
            return f"{sentence}; no model is named, which it may need: pass --model NAME."
        if _NO_MODEL.search(f"{quote} {self._code}"):
            return f"{sentence}; check the model's name ({self.endpoint.model})."
        return f"{sentence}."

    def _without_api(self) -> str:
        url = self.endpoint.http_url
        *others, last = self.asked
        names = f"{', '.join(others)} or {last}" if others else last
        said = f"{self._where} has no {names} API below {url} (HTTP {self.status}{self._quote})"
        if not self.endpoint.path:
            return f"{said}; the address may lack its path, such as {url}/v1."
        if self.endpoint.transport != "auto":
            return f"{said}; it may have another one: try `--transport auto`."
        return f"{said}; check the address."

    @property
    def _where(self) -> str:
        return f"The model server at {self.endpoint.host} ({self.endpoint.url})"

    @property
    def _given(self) -> WireError | None:
        try:
            return error_of(loads(self.body))
        except ValueError:
            return None

    @property
    def _code(self) -> str:
        given = self._given
        return given.code or "" if given is not None else ""

    @property
    def _quote(self) -> str:
        said = self.said
        if len(said) > _MAX_QUOTE_LENGTH:
            said = f"{said[:_MAX_QUOTE_LENGTH]}…"
        return f': "{said}"' if said else ""


def explained(detail: str) -> str:
    """Why a connection failed, with the way out where there is one."""
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        return f"{detail}; if you trust its certificate, name the file of it in SSL_CERT_FILE"
    if _REFUSED in detail:
        return "nothing listens there; start the server, or correct its address"
    return _NUMBER.sub("", detail)


def error_of(value: object, depth: int = _MAX_DEPTH) -> WireError | None:
    """The error in a JSON value, which servers nest in many ways; ``None`` if there is none."""
    if not value or not depth:
        return None
    if isinstance(value, str):
        if value.lstrip().startswith(("{", "[")):
            try:
                return error_of(loads(value), depth - 1) or WireError(message=value)
            except ValueError:
                pass
        return WireError(message=value)
    if isinstance(value, list):
        found = (error_of(item, depth - 1) for item in cast("list[object]", value))
        return next((error for error in found if error is not None), None)
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    words = [fields.get(name) for name in ("code", "type", "status")]
    code = next((str(word) for word in words if isinstance(word, str | int) and word != ""), None)
    for name in ("error", "errors", "message", "detail", "msg", "error_description"):
        inner = error_of(fields.get(name), depth - 1)
        if inner is not None:
            kind = fields.get("type")
            kind = inner.type or (kind if isinstance(kind, str) else None)
            return WireError(inner.code or code, inner.message, kind, inner.param)
    # The type of an event alone is no error.
    says = fields.get("code") or depth < _MAX_DEPTH
    return WireError(code) if code is not None and says and "choices" not in fields else None
