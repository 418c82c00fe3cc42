"""Server-sent events, as the HTTP APIs of model servers stream them."""

from __future__ import annotations


class SseParser:
    """Splits a byte stream into server-sent events; chunk boundaries do not matter."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[tuple[str, bytes]]:
        """Name and data of the events that this chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        complete: list[tuple[str, bytes]] = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
            elif not line:
                if self._data:
                    complete.append((self._name, b"\n".join(self._data)))
                self._name, self._data = "", []
        return complete
