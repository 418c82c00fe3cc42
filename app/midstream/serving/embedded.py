"""The model server as a child process that lives exactly as long as the program that started it.

The child gets a one-time token on its standard input, never on the command line, and listens on a
random loopback port. What it writes to standard error is kept in a log file in the state folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from asyncio.subprocess import PIPE, Process
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from midstream import processes
from midstream.errors import UnavailableError
from midstream.responses.endpoint import Endpoint
from midstream.responses.model_info import ModelInfo
from midstream.serving.source import ModelSource
from midstream.workspace.paths import state_dir

_KEPT_LOGS = 5
"""Logs that are kept, with that of this server."""
_CLOSE_SECONDS = 2.0
"""How long the child may take to end, and again after it was terminated."""
_TAIL_BYTES = 2000
"""Bytes of the log in which its last line is looked for."""
_NICENESS = 2
"""How much the child yields to the screen and to other programs."""
_START_SECONDS = 60
"""Limit on the time that loading may take."""


class EmbeddedServer:
    """Starts, watches and ends the child process.

    Start it from a thread that stays alive (normally the main thread): Linux ties the child's life
    to the thread that made it.

    Args:
        source: What to serve.
        state_dir: Where the log file goes; None for the user's state folder.
    """

    def __init__(self, source: ModelSource, *, state_dir: Path | None = None) -> None:
        self._source = source
        self._state_dir = state_dir
        self._process: Process | None = None
        self._token = ""
        """The token of a child that was launched and does not serve yet."""
        self.log_path: Path | None = None
        self.model_info = ModelInfo()

    @property
    def process(self) -> Process | None:
        """The child; None before ``start`` and after ``close``."""
        return self._process

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def launch(self) -> None:
        """Start the child without waiting until it serves.

        Raises:
            UnavailableError: It is running already, or it cannot be started.
        """
        if self.alive:
            raise UnavailableError("The model server is running already.")
        source = self._located().to_json()
        self.log_path = self._open_log()
        with self.log_path.open("ab") as log:
            try:
                process = await processes.start_python(
                    "midstream.serving",
                    source,
                    "--nice",
                    str(_NICENESS),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=log,
                    env=_environment(),
                )
            except OSError as error:
                raise UnavailableError(f"The model server cannot be started: {error}.") from error
        self._process, self._token = process, secrets.token_urlsafe(32)
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):  # It has ended, and `start` says why.
            process.stdin.write(self._token.encode() + b"\n")
            await process.stdin.drain()

    async def start(self) -> Endpoint:
        """Start the child, unless ``launch`` did, and wait until it serves.

        Returns:
            Where it serves, with the token of this start.

        Raises:
            UnavailableError: It does not start; the child's own message is used if there is one.
        """
        if not self._token:
            await self.launch()
        process, token, self._token = self._process, self._token, ""
        assert process is not None
        try:
            hello = await self._greet(process)
        except BaseException:
            await self.close()
            raise
        self.model_info = ModelInfo().updated(hello.get("facts", {}))
        return Endpoint(f"ws://127.0.0.1:{hello['port']}/v1", token, hello["model"], "local")

    async def close(self) -> None:
        """End the child and wait for its exit."""
        process, self._process = self._process, None
        self._token = ""
        if process is not None:
            await processes.uninterrupted(lambda: _close(process))

    def _located(self) -> ModelSource:
        source = self._source
        if source.replay is not None:
            return replace(source, replay=source.replay.resolve())
        folder = source.folder
        if folder is None:
            from midstream.resources import default_model

            folder = default_model()
        if not folder.is_dir():
            raise UnavailableError(
                f"There is no model folder at {folder}; name one with --model, or leave it out for "
                "the shipped model."
            )
        return replace(source, folder=folder.resolve())

    def _open_log(self) -> Path:
        """Create the log folder, delete old logs, and name this one."""
        folder = (self._state_dir or state_dir()) / "server-logs"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            old = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
            for path in old[: -(_KEPT_LOGS - 1)]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(
                f"The log folder {folder} cannot be written ({error.strerror or error})",
                "set MIDSTREAM_STATE_DIR to a writable folder",
            ) from error
        return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"

    async def _greet(self, process: Process) -> dict[str, Any]:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_SECONDS):
                line = await process.stdout.readline()
        except TimeoutError:
            raise UnavailableError(
                f"The model server did not start within {_START_SECONDS} seconds; its log "
                f"is {self.log_path}."
            ) from None
        try:
            hello = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            raise UnavailableError(
                f"The model server exited during startup ({self._last_log_line()}); its log is "
                f"{self.log_path}."
            ) from None
        error = hello.get("error")
        if error is not None:
            raise UnavailableError(error["message"])
        return hello

    def _last_log_line(self) -> str:
        if self.log_path is None or not self.log_path.exists():
            return "no message"
        lines = self.log_path.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


async def _close(process: Process) -> None:
    """Close the input of a child, which ends it; else terminate it, else kill it."""
    if process.stdin is not None:
        process.stdin.close()
    for end in (process.terminate, process.kill):
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await process.wait()
            break
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                end()
    await processes.end(process, kill=False)


def _environment() -> dict[str, str]:
    """The child's environment, without keys of hosted endpoints."""
    hidden = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
    return {name: value for name, value in os.environ.items() if not name.endswith(hidden)}
