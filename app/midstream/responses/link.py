"""What the client needs of a connection, so that WebSocket and plain HTTP look alike to it."""

from __future__ import annotations

from typing import Any, Protocol


class Link(Protocol):
    """A way to one endpoint; events and the loss of it are told by callbacks.

    Attributes:
        alive: Whether it can still be used.
    """

    alive: bool

    @property
    def age(self) -> float:
        """Seconds since it was opened."""
        ...

    async def send(self, frame: dict[str, Any]) -> None:
        """Send one client event.

        Raises:
            UnavailableError: It is gone.
        """
        ...

    async def close(self) -> None:
        """Close it and what runs on it; its loss is not reported."""
        ...
