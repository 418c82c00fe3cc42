"""What each kind of endpoint can do beyond plain responses: how it is stopped, and for how long a
socket lives.

Only what is documented or was observed; the client starts from here and remembers what it learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from midstream.responses.endpoint import EndpointKind

StopRung = Literal["interrupt", "probe", "drop"]
"""How a response is stopped.

"interrupt": ``response.interrupt`` is known to work. "probe": try it once, and drop the connection
if it is refused or not answered. "drop": leave the connection, which stops the response
everywhere.
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the client may rely on.

    Attributes:
        stop: How to stop a response.
        connection_seconds: When to renew the connection between turns, before the server ends it.
        counts_tokens: Whether text events can carry their number of tokens on request.
        patience_seconds: How long a response that was told to stop may take to end.
    """

    stop: StopRung
    connection_seconds: float | None = None
    counts_tokens: bool = False
    patience_seconds: float = 1.0


_DIALECTS: dict[EndpointKind, Dialect] = {
    # Our server reads the stop between two forward passes, also while it reads a long prompt.
    "local": Dialect("interrupt", counts_tokens=True, patience_seconds=5.0),
    # Limit 60 minutes; whether the public endpoint takes an interrupt is not documented.
    "openai": Dialect("probe", connection_seconds=55 * 60),
    "azure": Dialect("drop", connection_seconds=55 * 60),
    # Limit 25 minutes.
    "xai": Dialect("drop", connection_seconds=23 * 60),
    "custom": Dialect("probe", connection_seconds=55 * 60),
}


def dialect_of(kind: EndpointKind) -> Dialect:
    """Return what is known about a kind of endpoint."""
    return _DIALECTS[kind]
