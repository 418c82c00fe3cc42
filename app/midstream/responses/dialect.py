"""The kinds of endpoints: everything that differs between them, one record each.

Only what is documented or was observed. Adding a kind means a name in `EndpointKind` and a record
in `DIALECTS`; settings, pages, `doctor` and the client read the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

EndpointKind = Literal["local", "openai", "xai", "azure", "custom"]

StopRung = Literal["interrupt", "probe", "drop"]
"""How a response is stopped.

"interrupt": `response.interrupt` is known to work. "probe": try it once, and drop the connection
if it is refused or not answered. "drop": close the connection, which stops the response on every
server.
"""

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Values of `reasoning.effort`, least first; which of them a model takes is up to the model."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the client may rely on at one kind of endpoint.

    Attributes:
        stop: How to stop a response.
        connection_seconds: When to renew the connection between turns, before the server ends it.
        patience_seconds: How long a stopped response may take to end.
        stream_options: Sent with every request.
        midstream: It is a Midstream server: it takes a seed and corrections, keeps partial text,
            reads ahead, and leaves effort to the session.
        patch_tool: It streams the input of custom tools with a grammar.
        lists_models: `GET /models/NAME` is worth asking: it may be a Midstream server.
        hosted: A company's service: it needs a model name, and its key needs an encrypted way.
        domains: Hosts that are of this kind; one that begins with a dot covers subdomains.
        url: Its address; "" where every account or machine has its own.
        key_env: Conventional variable for its key; None where no key is needed.
        edit_format: How its models are asked to write edits; None leaves it to the server.
        efforts: Efforts to offer.
    """

    stop: StopRung
    connection_seconds: float | None = None
    patience_seconds: float = 1.0
    stream_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    midstream: bool = False
    patch_tool: bool = False
    lists_models: bool = False
    hosted: bool = False
    domains: tuple[str, ...] = ()
    url: str = ""
    key_env: str | None = None
    edit_format: str | None = None
    efforts: tuple[str, ...] = ()


DIALECTS: Final[Mapping[EndpointKind, Dialect]] = {
    "local": Dialect(
        stop="interrupt",
        # The server looks for a stop between two forward passes, also while it reads a prompt.
        patience_seconds=5.0,
        stream_options={"midstream_tokens": True},
        midstream=True,
        lists_models=True,
        url="ws://127.0.0.1:8042/v1",
        efforts=("low", "medium", "high", "xhigh"),
    ),
    "openai": Dialect(
        # Whether the public endpoint takes an interrupt is not documented. Limit 60 minutes.
        stop="probe",
        connection_seconds=55 * 60,
        stream_options={"include_obfuscation": False},
        patch_tool=True,
        hosted=True,
        domains=("api.openai.com",),
        url="wss://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        edit_format="v4a",
        efforts=EFFORTS,
    ),
    "xai": Dialect(
        stop="drop",
        connection_seconds=23 * 60,  # Limit 25 minutes.
        hosted=True,
        domains=("api.x.ai",),
        url="wss://api.x.ai/v1",
        key_env="XAI_API_KEY",
        edit_format="search-replace",
    ),
    "azure": Dialect(
        stop="drop",
        connection_seconds=55 * 60,
        patch_tool=True,
        hosted=True,
        domains=(".openai.azure.com", ".services.ai.azure.com"),
        key_env="AZURE_OPENAI_API_KEY",
        edit_format="v4a",
        efforts=EFFORTS,
    ),
    "custom": Dialect(stop="probe", connection_seconds=55 * 60, lists_models=True),
}


def kind_of(url: str) -> EndpointKind:
    """The kind of endpoint at an address, by its host."""
    host = urlsplit(url).hostname or ""
    for kind, dialect in DIALECTS.items():
        for domain in dialect.domains:
            if host == domain or (domain.startswith(".") and host.endswith(domain)):
                return kind
    return "custom"
