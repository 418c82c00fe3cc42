"""The application on many machines: a Ray Serve deployment (``pip install 'midstream[ray]'``).

Every replica loads the model and runs the same ASGI application as a single server. A WebSocket is
one request to Ray, so it stays on its replica for as long as it is open, and with it the replica's
cache of attention states. Ray adds replicas when there are more open connections than they should
have, and takes them away later; a client that loses its replica reconnects and sends its
conversation in full. Scheduling is left to Ray.

One machine, two to four replicas::

    midstream serve --ray --replicas 2 --max-replicas 4 --model NAME --token-file FILE

A cluster: install ``midstream[ray]`` and put the model folder at the same path on every node, then

    ray start --head                                     # on the first machine
    ray start --address=FIRST:6379                       # on each other one
    midstream serve --ray --ray-address auto --host 0.0.0.0 --token-file FILE \\
        --tls-cert CERT --tls-key KEY --model FOLDER --replicas 2 --max-replicas 16 --replica-gpus 1

and every developer's ``[endpoints.team]`` has ``kind = "local"``, the address and a ``key_env``.
Ctrl+C takes the deployment away and leaves the cluster running. Limits are per replica, except for
those of stored responses.

HTTP requests land on any replica. So what they share is in one small actor: the stored responses,
which any replica retrieves, goes on from, deletes and, in the background, cancels; and their
last metrics, so that a scrape of one shows all. It costs a stored response a call within the
cluster. If the actor's machine is lost, Ray starts it anew, without the responses that it had.

A Ray that is started for the deployment alone listens on loopback, except for the port of
``midstream`` and those on which replicas speak to each other; all of its own ports take a token
that is made for it and known to its processes only.
The ports of a cluster (6379, 8265, 10001 and the workers') are as open as it was started: give it
a token (``RAY_AUTH_MODE=token``), and keep them inside a private network. Ray's proxy also answers
``/-/healthz`` and ``/-/routes`` without a token; they hold nothing of the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import os
import secrets
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from midstream.errors import UnavailableError
from midstream.serving.limits import Limits
from midstream.serving.metrics import Family
from midstream.serving.requests import RequestError
from midstream.serving.source import ModelSource
from midstream.serving.stored import ResponseShelf, StoredResponse

if TYPE_CHECKING:
    from starlette.applications import Starlette

T = TypeVar("T")

_NAME = "midstream"
_SHARED = "midstream-shared"
_HEALTH_SECONDS = 10.0
"""Time between two health checks; an answer may take three times as long."""
_LEAVE_SECONDS = 15.0
"""How long a replica that is taken away waits for its connections to end by themselves."""


_REPORT_SECONDS = 20.0
"""How old the last metrics of a replica are at most; several reports may have failed by then."""


class SharedState(ResponseShelf):
    """The state that replicas share; a Ray actor."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._reports: dict[str, tuple[float, Sequence[Family]]] = {}

    async def exchange(self, name: str, own: Sequence[Family]) -> dict[str, Sequence[Family]]:
        """Take the metrics of a replica; the last ones of all that still report."""
        now = time.monotonic()
        self._reports[name] = (now, own)
        self._reports = {
            replica: report
            for replica, report in sorted(self._reports.items())
            if now - report[0] <= _REPORT_SECONDS
        }
        return {replica: families for replica, (_, families) in self._reports.items()}


class SharedByRay:
    """That actor as a replica sees it: a ``Shelf`` and ``Replicas``."""

    def __init__(self, name: str) -> None:
        """Find the actor."""
        self._ray, _ = _modules()
        self._name = name
        self._actor = self._ray.get_actor(_SHARED, namespace=_NAME)

    @property
    def shelf(self) -> SharedByRay:
        return self

    async def put(self, stored: StoredResponse) -> None:
        await self._called(self._actor.put.remote(stored))

    async def get(self, response_id: str) -> StoredResponse | None:
        return await self._called(self._actor.get.remote(response_id))

    async def drop(self, response_id: str) -> None:
        await self._called(self._actor.drop.remote(response_id))

    async def stop(self, response_id: str) -> bool:
        return await self._called(self._actor.stop.remote(response_id))

    async def until_stopped(self, response_id: str) -> None:
        await self._called(self._actor.until_stopped.remote(response_id))

    async def exchange(self, own: Sequence[Family]) -> Mapping[str, Sequence[Family]]:
        return await self._called(self._actor.exchange.remote(self._name, own))

    async def _called(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except self._ray.exceptions.RayError as error:
            raise RequestError(
                "The replicas' shared state cannot be reached; try again in a moment.",
                code="server_error",
                status=503,
            ) from error


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options of the deployment.

    Attributes:
        source: The model; its folder must be at the same place on every machine.
        names: Names that it answers to; none for its own.
        token: Bearer token every request needs, or None.
        origins: Values of ``Origin`` that browser pages may come from.
        limits: Bounds of each replica.
        host: Address to listen on.
        port: Port, 0 for a free one.
        certificate: Path of a TLS certificate chain.
        key: Path of its key.
        min_replicas: Replicas that always run.
        max_replicas: Replicas at most.
        connections_per_replica: Open connections (and HTTP requests) above which another replica
            is started.
        cpus: Cores that Ray sets aside for each replica.
        gpus: Graphics cards, or parts of one, for each replica.
        address: Address of a running Ray cluster, "auto" for the one this machine belongs to, or
            None to start Ray on this machine alone.
        log_requests: Whether each request makes a line in Ray's log.
    """

    source: ModelSource
    names: tuple[str, ...] = ()
    token: str | None = None
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    host: str = "127.0.0.1"
    port: int = 8042
    certificate: str | None = None
    key: str | None = None
    min_replicas: int = 1
    max_replicas: int = 4
    connections_per_replica: float = 8.0
    cpus: float = 1.0
    gpus: float = 0.0
    address: str | None = None
    log_requests: bool = False


def application(options: ClusterOptions) -> Any:
    """Bind the deployment; returns Ray Serve's ``Application``.

    Raises:
        UnavailableError: Ray is not installed.
    """
    _, serve = _modules()

    def build_app() -> Starlette:
        from midstream.serving.app import create_app

        model = options.source.load()
        return create_app(
            dict.fromkeys(options.names or (model.name,), model),
            token=options.token,
            limits=options.limits,
            origins=options.origins,
            replicas=SharedByRay(serve.get_replica_context().replica_tag),
        )

    class Replica:
        """Ray asks it whether it is well."""

        app: Starlette

        def check_health(self) -> None:
            """Raise if the model's thread has died; Ray replaces the replica then."""
            self.app.state.service.check()

    deployment = serve.deployment(
        name=_NAME,
        max_ongoing_requests=options.limits.connections + options.limits.posts,
        autoscaling_config={
            "min_replicas": options.min_replicas,
            "initial_replicas": options.min_replicas,
            "max_replicas": max(options.max_replicas, options.min_replicas),
            "target_ongoing_requests": options.connections_per_replica,
        },
        health_check_period_s=_HEALTH_SECONDS,
        health_check_timeout_s=_HEALTH_SECONDS * 3,
        graceful_shutdown_timeout_s=_LEAVE_SECONDS,
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": options.gpus},
    )(serve.ingress(build_app)(Replica))
    return deployment.bind()


@asynccontextmanager
async def cluster(options: ClusterOptions) -> AsyncGenerator[int]:
    """Deploy, and take the deployment away when the block is left; yields the port.

    A Ray that was started for it ends with it; a running cluster goes on.

    Raises:
        UnavailableError: Ray is not installed or cannot be reached, or the model does not load.
    """
    if options.address is None:
        _guard_own_ray()
    bound = application(options)
    port = options.port or _free_port(options.host)
    try:
        await asyncio.to_thread(_deploy, bound, options, port)
    except Exception as error:  # Ray raises bare ones, too, as when its node does not start.
        await asyncio.to_thread(_leave, options)
        raise UnavailableError(f"Ray could not serve the model: {_last_line(error)}.") from error
    try:
        yield port
    finally:
        await asyncio.to_thread(_leave, options)


def _guard_own_ray() -> None:
    """Keep the Ray that this process starts to loopback, and behind a token.

    Both stand in the environment, from which Ray's processes inherit them, and which Ray reads when
    it is imported. The first is how Ray stays on loopback on macOS and Windows; it is no option.
    """
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = _own_token()


@functools.cache
def _own_token() -> str:
    """A token for this process, in which Ray reads it once."""
    return secrets.token_hex(32)


def _deploy(bound: Any, options: ClusterOptions, port: int) -> None:
    ray, serve = _modules()
    logs = {
        "log_level": "INFO" if options.log_requests else "ERROR",
        "enable_access_log": options.log_requests,
    }
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    ray.init(
        address=options.address or "local",
        namespace=_NAME,
        include_dashboard=False if options.address is None else None,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    serve.start(
        http_options={
            "host": options.host,
            "port": port,
            "ssl_certfile": options.certificate,
            "ssl_keyfile": options.key,
        },
        logging_config=logs,
    )
    # An actor that went with its driver would leave a deployment that outlived it without one.
    ray.remote(SharedState).options(
        name=_SHARED,
        namespace=_NAME,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        num_cpus=0,
    ).remote(options.limits)
    serve.run(
        bound,
        name=_NAME,
        route_prefix="/",
        logging_config=logs,
    )


def _leave(options: ClusterOptions) -> None:
    ray, serve = _modules()
    if not ray.is_initialized():
        return
    with contextlib.suppress(Exception):
        # In a cluster that goes on, end only our parts; a Ray of our own ends as a whole.
        serve.delete(_NAME)
        ray.kill(ray.get_actor(_SHARED, namespace=_NAME))
    ray.shutdown()


def _modules() -> tuple[Any, Any]:
    try:
        # Optional packages come by name: the type checker runs without them.
        return importlib.import_module("ray"), importlib.import_module("ray.serve")
    except ImportError:
        raise UnavailableError(
            "Serving on Ray needs the package ray: pip install 'midstream[ray]'."
        ) from None


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).rstrip(".")
