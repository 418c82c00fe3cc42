"""The model server of a session: which one is used, connecting and reconnecting.

With no endpoint configured the server is a child process, started in the background and restarted
when it has died.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlsplit

from midstream.errors import UnavailableError, UserError
from midstream.pairing.models.disclosures import note_disclosed, what_is_sent
from midstream.resources import find_model
from midstream.responses.model_info import ModelInfo
from midstream.responses.profiles import BUILT_IN

if TYPE_CHECKING:
    from midstream.responses.client import Client
    from midstream.responses.endpoint import Endpoint
    from midstream.responses.profiles import Price, Profile
    from midstream.serving.embedded import EmbeddedServer
    from midstream.settings import Settings

_FACTS_SECONDS = 3.0
"""How long a server may take to describe its model."""


def configured_endpoint(
    settings: Settings, environ: Mapping[str, str] = os.environ
) -> Endpoint | None:
    """The endpoint that the settings name, or ``None`` for the embedded server.

    Raises:
        UsageError: The endpoint is not configured, or its key or model name is missing.
    """
    profile = settings.profile
    return None if profile is None else profile.endpoint(environ)


def read_model(endpoint: Endpoint) -> tuple[str, ModelInfo]:
    """Name and properties of a model on a Midstream server (blocking).

    Nothing is known about other servers.  Without a name the server describes its default model.
    """
    from midstream.responses.catalogue import get_json

    known = endpoint.model, ModelInfo()
    if not endpoint.dialect.lists_models:
        return known
    # Engines have models with a slash in their names.
    try:
        answer = get_json(endpoint, f"/models/{quote(endpoint.model)}", seconds=_FACTS_SECONDS)
    except UnavailableError:
        return known  # The client connects, and reports why that failed.
    if not isinstance(answer, dict):
        return known
    told = cast("dict[str, object]", answer)
    values, name = told.get("metadata"), told.get("id")
    if not isinstance(values, dict):
        return known
    called = name if isinstance(name, str) and name.isprintable() else ""
    return endpoint.model or called, ModelInfo().updated(
        {str(key): str(value) for key, value in cast("dict[object, object]", values).items()}
    )


class ServerLink:
    """A client that is connected when it is needed.

    Args:
        settings: Which server and model.
        endpoint: A server to use instead of the configured one.
        replay: A script for the embedded server.
        state: Folder for the embedded server's log; the user's state folder by default.

    Attributes:
        model_name: The model's name, ``""`` before it is known; ``BUILT_IN`` for the shipped one.
        model_info: Properties of the model.
        reached: Whether these were read.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        endpoint: Endpoint | None = None,
        replay: Path | None = None,
        state: Path | None = None,
    ) -> None:
        self.model_name = ""
        self.model_info = ModelInfo()
        self.reached = False
        self._settings = settings
        self._endpoint = endpoint
        self._replay = replay
        self._state = state
        self._on_lost: Callable[[], None] = lambda: None
        self._server: EmbeddedServer | None = None
        self._client: Client | None = None
        self._beside: Client | None = None
        self._lock = asyncio.Lock()
        self._watcher: asyncio.Task[None] | None = None
        self._switched = False
        self._closed = False
        self._told = ""
        self._disclosure = ""

    def connect(self, on_lost: Callable[[], None]) -> None:
        """Have ``on_lost`` called on the loop when the embedded server has ended by itself."""
        self._on_lost = on_lost

    @property
    def profile(self) -> Profile | None:
        """The configured endpoint in use, ``None`` for the built-in or a given server."""
        return self._settings.profile if self._endpoint is None else None

    @property
    def called(self) -> str:
        """The model's name, or what the settings say of it until that is known."""
        if self.model_name:
            return self.model_name
        if not self.embedded:
            profile = self.profile
            return (profile.model if profile is not None else "") or self.place
        if self._replay is not None:
            return ""
        chosen = self._settings.model
        return BUILT_IN if chosen is None else PurePath(chosen).name

    @property
    def name_or_the_model(self) -> str:
        """The model's name, for the beginning of a sentence."""
        if self.model_name == BUILT_IN:
            return "The built-in model"
        return self.model_name or "The model"

    @property
    def recipient(self) -> str:
        """Who gets what is sent, and where: ``gpt-5 at openai``."""
        if self.embedded:
            known = self.called and self.called != BUILT_IN
            return f"{self.called if known else 'the built-in model'} on this machine"
        return f"{self.called} at {self.place}" if self.called != self.place else self.place

    @property
    def place(self) -> str:
        """The server, for the middle of a sentence."""
        if self._endpoint is not None:
            return self._endpoint.host
        profile = self.profile
        if profile is None:
            return "the built-in server"
        return profile.name or (urlsplit(profile.url).hostname or profile.url)

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the endpoints that are not in use and lack neither a model nor a key."""
        used = self.profile.name if self.profile is not None else ""
        return tuple(
            other.name
            for other in self._settings.endpoints
            if other.name != used and other.names_model and other.has_key() is not False
        )

    @property
    def price(self) -> Price | None:
        """Price of its tokens, if configured."""
        return self.profile.price if self.profile is not None else None

    @property
    def embedded(self) -> bool:
        """Whether its server is a child of this program, which loads the model when it starts."""
        return self._endpoint is None and self.profile is None

    @property
    def built_in(self) -> bool:
        """Whether the shipped model answers."""
        return self.embedded and self._replay is None and self._settings.model is None

    @property
    def pace(self) -> float | None:
        """Tokens per second that the embedded server writes at most, ``None`` for no limit."""
        return self._settings.pace if self.embedded else None

    @property
    def local(self) -> bool:
        """Whether the model runs on this machine."""
        if self._endpoint is not None:
            return self._endpoint.loopback
        profile = self.profile
        return profile is None or profile.loopback

    @property
    def takes_patch_tool(self) -> bool:
        """Whether the server streams the input of custom tools with a grammar."""
        given = self._endpoint or self.profile
        return given is not None and given.dialect.patch_tool

    @property
    def on_wafers(self) -> bool:
        """Whether its model runs on wafers."""
        given = self._endpoint or self.profile
        return given is not None and given.dialect.wafers

    @property
    def own(self) -> bool:
        """Whether it is a Midstream server, so that effort is up to the session."""
        given = self._endpoint or self.profile
        return given is None or given.dialect.midstream

    def disclosure(self) -> str:
        """What will be sent to the server, as a sentence, once per endpoint off this machine, else
        "". To be told before the first request.
        """
        said, self._disclosure = self._disclosure, ""
        return said

    def remark(self) -> str:
        """What was found out about the server and not told yet, as a sentence, or ""."""
        said = self._client.remark if self._client is not None else ""
        told, self._told = self._told, said or self._told
        return said if said != told else ""

    @property
    def server(self) -> EmbeddedServer | None:
        """The embedded server, if there is one."""
        return self._server

    @property
    def up(self) -> bool:
        """Whether a request can be sent now."""
        return self._client is not None and self._client.connected

    @property
    def reader(self) -> Client | None:
        """The client, if its server can prefill now.

        Only on this machine: unsent input goes nowhere else.
        """
        client = self._client
        ready = client is not None and client.reads_ahead and self.local and not self._switched
        return client if ready else None

    async def launch(self) -> None:
        """Start the embedded server, if it is used, without waiting until it has loaded its model.

        What keeps it from starting is raised by ``ready``.
        """
        async with self._lock:
            if self.embedded and self._server is None and not self._closed:
                with contextlib.suppress(UserError):
                    await self._launch()

    async def ready(self) -> Client:
        """A connected client, starting or restarting the server if needed.

        Raises:
            UsageError: The configured endpoint is not complete.
            UnavailableError: The server cannot be started or reached.
        """
        async with self._lock:
            if self._closed:
                raise UnavailableError("This session is closed.")
            client = self._client
            server_died = self._server is not None and not self._server.alive
            leaves = server_died or self._switched
            if leaves:
                self._switched = False
                await self._leave()
            if client is None or leaves:
                client = await self._reach()
            await client.connect()
            return client

    async def ready_beside(self) -> Client:
        """A connected client of its own for what is asked beside the turns; raises as ``ready``.

        On one connection answers come one after the other, and stopping one may end the connection.
        """
        await self.ready()
        async with self._lock:
            if (client := self._beside) is None:
                raise UnavailableError("This session is closed.")
            await client.connect()
            return client

    @property
    def settings(self) -> Settings:
        """The settings that name the server and model of the next request."""
        return self._settings

    def switch(self, settings: Settings) -> None:
        """Send the next request to the server and model of these settings.

        What still runs on the current one then is stopped.
        """
        self._settings, self._endpoint = settings, None
        self.model_name, self.model_info, self.reached = "", ModelInfo(), False
        self._switched = True

    def learn(self, metadata: Mapping[str, str]) -> None:
        """Take what a response's metadata says about the model."""
        if not self._switched:
            self.model_info = self.model_info.learned(metadata)

    def shut(self) -> None:
        """Refuse further requests; ``close`` follows."""
        self._closed = True

    async def close(self) -> None:
        """Close the connection and end the embedded server, even one that is starting."""
        self.shut()
        if self._server is not None:
            await self._server.close()
        async with self._lock:
            await self._leave()

    async def _reach(self) -> Client:
        # In a thread, beside the start of the server: it takes 0.1 s of processor time.
        wire = asyncio.create_task(asyncio.to_thread(import_module, "midstream.responses.client"))
        try:
            endpoint = await self._place_of_server()
        finally:
            await wire
        from midstream.responses.client import Client

        self._client, self._beside = Client(endpoint), Client(endpoint)
        self.reached = True
        return self._client

    async def _place_of_server(self) -> Endpoint:
        """The configured server, or the embedded one, started; notes what its model is like."""
        endpoint = self._endpoint
        if endpoint is None:
            # In a thread: a keyring may prompt the user.
            endpoint = await asyncio.to_thread(configured_endpoint, self._settings)
        if endpoint is None:
            return await self._start_server()
        name, info = await asyncio.to_thread(read_model, endpoint)
        self.model_name = endpoint.model or name
        if self.profile is not None:
            info = self.profile.configured(info)
        elif info.declared_format is None:
            info = replace(info, declared_format=endpoint.dialect.edit_format)
        self.model_info = info
        if not endpoint.loopback and await asyncio.to_thread(note_disclosed, endpoint.url):
            self._disclosure = what_is_sent(endpoint.url)
        return endpoint

    async def _launch(self) -> EmbeddedServer:
        from midstream.serving.embedded import EmbeddedServer
        from midstream.serving.source import ModelSource

        chosen = self._settings.model
        source = ModelSource(
            None if chosen is None else find_model(chosen),
            self._replay,
            self._settings.provider,
            self._settings.threads,
            self._settings.pace,
            self._settings.pacing,
            self._settings.cache_mb,
        )
        server = EmbeddedServer(source, state_dir=self._state)
        await server.launch()
        self._server = server
        return server

    async def _start_server(self) -> Endpoint:
        server = self._server or await self._launch()
        endpoint = await server.start()
        self.model_info = server.model_info
        self.model_name = BUILT_IN if self.built_in else endpoint.model
        self._watcher = asyncio.create_task(self._watch(server))
        return endpoint

    async def _watch(self, server: EmbeddedServer) -> None:
        process = server.process
        if process is None:
            return
        await process.wait()
        if self._server is server and not self._closed:
            self._on_lost()

    async def _leave(self) -> None:
        clients = self._client, self._beside
        self._client = self._beside = None
        server, self._server = self._server, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher
        for client in clients:
            if client is not None:
                await client.close()
        if server is not None:
            await server.close()
