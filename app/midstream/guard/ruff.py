"""A warm ``ruff server`` child that is asked about one text at a time.

It speaks the Language Server Protocol over its standard streams; each query opens a document, asks
for its diagnostics and closes it (0.3 ms for a small text, 4 ms for 3,000 lines).  A dead child is
restarted on the next query.  After three deaths in a row ``ruff check`` runs for each query instead
(some 20 ms) until the server is tried again; if that fails as well, ruff counts as unavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, cast

from midstream import processes

_RULES: Final = ["S"]
_TIMEOUT_S: Final = 5.0
"""How long an answer may take."""
_DEATHS: Final = 3
"""Deaths after which the server is left alone for a while."""
_AGAIN_S: Final = 30.0
"""How long after its third death the server stays unused."""
MAX_ANSWER: Final = 1 << 26
"""Bytes of an answer."""
_GARBAGE: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of who reads garbage."""
BROKEN: Final = (OSError, EOFError, TimeoutError, *_GARBAGE)
"""Errors of a child that dies, hangs or writes garbage (a short read is an EOFError)."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of ruff: rule, sentence, and its place (0-based lines, character columns)."""

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int

    def moved(self, by: int) -> Diagnostic:
        """The same some lines further down."""
        return replace(self, line=self.line + by, end_line=self.end_line + by)

    @classmethod
    def of(
        cls, code: object, message: object, start: tuple[Any, Any], end: tuple[Any, Any]
    ) -> Self:
        """Read what ruff says about one place, both ends of which count from 0.

        Raises:
            ValueError: It is no place.
        """
        whole = all(isinstance(number, int) and number >= 0 for number in (*start, *end))
        if not whole or start[0] > end[0]:
            raise ValueError("it names a place that does not exist")
        return cls(str(code or ""), str(message), *start, *end)


class RuffUnavailableError(RuntimeError):
    """ruff is not installed or does not work; the sentence says which."""

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """For one of the errors of a child that dies, hangs or writes garbage."""
        if isinstance(error, TimeoutError):
            why = "it does not answer"
        elif isinstance(error, _GARBAGE):
            why = "its answer cannot be read"
        else:
            why = str(error) or "it ends at once"
        return cls(f"ruff does not work ({why}).")


def find_ruff() -> str | None:
    """Return the ruff program of this environment, else the one on the PATH."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.is_file() else processes.find_program("ruff")


def ruff_program() -> str:
    """As ``find_ruff``.

    Raises:
        RuffUnavailableError: There is none.
    """
    program = find_ruff()
    if program is None:
        raise RuffUnavailableError("ruff is not installed; pip install ruff.")
    return program


class RuffServer:
    """One child process; queries run one after the other.

    Args:
        without: Security rules to leave out.
    """

    def __init__(self, without: Collection[str] = ()) -> None:
        self._without = sorted(without)
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._next_id = 0
        self._deaths = 0
        self._again_at = 0.0
        self._closing: list[dict[str, Any]] = []

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def check(self, text: str) -> list[Diagnostic]:
        """Ruff's security findings on a Python text.

        Raises:
            RuffUnavailableError: Ruff is missing, or neither its server nor its command works.
        """
        async with self._lock:
            loop = asyncio.get_running_loop()
            if self._deaths >= _DEATHS and loop.time() >= self._again_at:
                self._deaths = _DEATHS - 1
            while self._deaths < _DEATHS:
                try:
                    # Not wait_for: before Python 3.12 it can lose a cancellation.
                    async with asyncio.timeout(_TIMEOUT_S):
                        return await self._query(text)
                except BROKEN as error:
                    await self._kill()
                    # One that hangs costs too much time to be tried again.
                    self._deaths = _DEATHS if isinstance(error, TimeoutError) else self._deaths + 1
                    self._again_at = loop.time() + _AGAIN_S
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    return await self._command(text)
            except BROKEN as error:
                raise RuffUnavailableError.of(error) from error

    async def close(self) -> None:
        """End the child."""
        await self._kill()

    # Protocol

    async def _query(self, text: str) -> list[Diagnostic]:
        if self.pid is None:
            await self._start()
        self._next_id += 1
        uri = f"untitled:guard-{self._next_id}.py"
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        about = {"textDocument": {"uri": uri}}
        # One write, because waking the child costs more than its content.  For the same reason the
        # document is closed with the next query (in this one it could be gone too early).
        closing, self._closing = self._closing, []
        await self._send(
            *closing,
            {"method": "textDocument/didOpen", "params": {"textDocument": document}},
            {"id": self._next_id, "method": "textDocument/diagnostic", "params": about},
        )
        self._closing = [{"method": "textDocument/didClose", "params": about}]
        report = await self._answer(self._next_id)
        found = [
            Diagnostic.of(
                item.get("code"),
                item["message"],
                (item["range"]["start"]["line"], item["range"]["start"]["character"]),
                (item["range"]["end"]["line"], item["range"]["end"]["character"]),
            )
            for item in items(report["items"])
        ]
        self._deaths = 0
        return found

    async def _command(self, text: str) -> list[Diagnostic]:
        """Ask without a server, with one process for the text."""
        arguments = ["check", "--isolated", "--no-cache", "--quiet", "--exit-zero"]
        arguments += ["--target-version", "py313", "--select", ",".join(_RULES)]
        arguments += ["--output-format", "json"]
        if self._without:
            arguments += ["--ignore", ",".join(self._without)]
        process = await processes.start(
            ruff_program(),
            *arguments,
            *("--stdin-filename", "guard.py", "-"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=os.sep,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(text.encode("utf-8", "replace"))
            process.stdin.close()
            await process.stdout.readexactly(MAX_ANSWER)
        except asyncio.IncompleteReadError as ended:
            output = ended.partial
            await process.wait()
        else:
            raise ValueError("an answer is too long")
        finally:
            await processes.end(process)
        if process.returncode:
            raise EOFError(f"exit code {process.returncode}")
        return [
            Diagnostic.of(
                item.get("code"),
                item["message"],
                (item["location"]["row"] - 1, item["location"]["column"] - 1),
                (item["end_location"]["row"] - 1, item["end_location"]["column"] - 1),
            )
            for item in items(json.loads(output))
        ]

    async def _start(self) -> None:
        program = ruff_program()
        self._process = await processes.start(
            program,
            "server",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=os.sep,  # keep a project's ruff configuration out of it
            start_new_session=True,
            limit=2**24,
        )
        settings = {
            "configurationPreference": "editorOnly",
            "configuration": {"target-version": "py313"},
            "lint": {"select": _RULES, "ignore": self._without},
        }
        params: dict[str, Any] = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {
                "general": {"positionEncodings": ["utf-32"]},
                "textDocument": {"diagnostic": {}},
            },
            "initializationOptions": {"settings": settings},
        }
        self._next_id += 1
        await self._send({"id": self._next_id, "method": "initialize", "params": params})
        await self._answer(self._next_id)
        await self._send({"method": "initialized", "params": {}})

    async def _answer(self, wanted: int) -> dict[str, Any]:
        while True:
            message = await self._receive()
            if "method" in message:
                if "id" in message:  # a request from the server, which gets no answer
                    await self._send({"id": message["id"], "result": None})
                continue
            if message.get("id") == wanted:
                if "error" in message:
                    raise ValueError(
                        message["error"].get("message", "ruff server refused a request")
                    )
                return message.get("result") or {}

    async def _send(self, *messages: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise EOFError("ruff server is not running")
        data = bytearray()
        for message in messages:
            body = json.dumps({"jsonrpc": "2.0", **message}).encode("utf-8", "replace")
            data += b"Content-Length: %d\r\n\r\n" % len(body) + body
        process.stdin.write(bytes(data))
        await process.stdin.drain()

    async def _receive(self) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdout is None:
            raise EOFError("ruff server is not running")
        length = 0
        while (header := (await process.stdout.readline()).strip()) or not length:
            if not header:
                raise EOFError("ruff server ended")
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length > MAX_ANSWER:
            raise ValueError("an answer is too long")
        return json.loads(await process.stdout.readexactly(length))

    async def _kill(self) -> None:
        process, self._process = self._process, None
        self._closing = []
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # The child leads a session of its own.
        # Its own children may hold its pipes open: do not wait for those.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                await process.wait()


def items(found: object) -> list[dict[str, Any]]:
    """The items of a list; anything else would look like one without items.

    Raises:
        TypeError: It is no list.
    """
    if not isinstance(found, list):
        raise TypeError("it is no list")
    return cast("list[dict[str, Any]]", found)
