"""The ASGI application: routes and their shared parts. uvicorn runs it on one machine, Ray Serve on
many.

Routes: WebSocket and POST ``/v1/responses``; GET and DELETE ``/v1/responses/{id}``, POST its
``/cancel`` and GET its ``/input_items``; GET ``/v1/models``, ``/v1/models/{id}``,
``/v1/telemetry``, ``/healthz`` and ``/metrics``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from midstream.engine.types import TextModel
from midstream.serving.access import AccessControl, Limited, refusal_response
from midstream.serving.connection import ServerConnection
from midstream.serving.http import EventStream, post_response, telemetry_events
from midstream.serving.limits import Limits
from midstream.serving.metrics import Family, render
from midstream.serving.requests import RequestError
from midstream.serving.service import Service
from midstream.serving.stored import ResponseShelf, Shelf, read_page

_PLACES = ("/v1/responses", "/v1/models", "/v1/telemetry", "/healthz", "/metrics")
_CODES = {404: "not_found", 405: "method_not_allowed"}


REPORT_SECONDS = 5.0
"""How often the replicas of a cluster tell each other their metrics."""


class Replicas(Protocol):
    """The replicas of a cluster, as one of them sees them."""

    @property
    def shelf(self) -> Shelf:
        """Their stored responses."""
        ...

    async def exchange(self, own: Sequence[Family]) -> Mapping[str, Sequence[Family]]:
        """Tell the others the metrics of this one; the last ones of all that run, by name.

        Raises:
            RequestError: They cannot be told.
        """
        ...


def _cross_origin(origins: Collection[str]) -> Middleware:
    """Preflight answers for browser pages of allowed origins."""
    return Middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["Authorization", "Content-Type"],
    )


def create_app(
    models: Mapping[str, TextModel],
    *,
    token: str | None,
    limits: Limits | None = None,
    origins: Collection[str] = (),
    replicas: Replicas | None = None,
) -> Starlette:
    """Make the application.

    Args:
        models: Models by the name that requests use; the first is the default. They are closed
            when the application shuts down.
        token: Bearer token every request needs, or None for none (only sensible on loopback).
        limits: Bounds; the defaults suit one machine.
        origins: Values of ``Origin`` that browser pages may come from; none by default.
        replicas: The cluster that this application is a replica of.
    """
    bounds = limits or Limits()
    shelf = ResponseShelf(bounds) if replicas is None else replicas.shelf
    service = Service(models, bounds, shelf)

    def counted() -> list[Family]:
        return service.metrics.families(connections=service.connections, generations=service.load)

    async def report(cluster: Replicas) -> None:
        while True:
            with contextlib.suppress(RequestError):
                await cluster.exchange(counted())
            await asyncio.sleep(REPORT_SECONDS)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        reporting = None if replicas is None else asyncio.create_task(report(replicas))
        yield
        if reporting is not None:
            reporting.cancel()
        await service.leave()
        service.close()

    async def responses_socket(socket: WebSocket) -> None:
        if service.connections >= bounds.connections:
            await socket.send_denial_response(
                refusal_response(503, "too_many_connections", "Too many connections are open.")
            )
            return
        service.connections += 1
        try:
            await socket.accept()
            connection = ServerConnection(socket, service)
            service.farewells.add(connection.farewell)
            try:
                await connection.run()
            finally:
                service.farewells.discard(connection.farewell)
        finally:
            service.connections -= 1

    async def models_list(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": service.model_objects()})

    async def models_one(request: Request) -> Response:
        return JSONResponse(service.model_object(request.path_params["model"]))

    async def telemetry(_: Request) -> Response:
        return EventStream(telemetry_events(service), bounds.unread_seconds)

    async def healthz(_: Request) -> Response:
        try:
            service.check()
        except RuntimeError:
            return JSONResponse({"status": "failed"}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def responses_post(request: Request) -> Response:
        return await post_response(request, service)

    async def response_one(request: Request) -> Response:
        if request.query_params.get("stream") == "true":
            raise RequestError(
                "A stored response cannot be streamed again; leave out stream.", param="stream"
            )
        return JSONResponse(await service.stored.response(request.path_params["id"]))

    async def response_delete(request: Request) -> Response:
        response_id = request.path_params["id"]
        await service.stored.delete(response_id)
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})

    async def response_cancel(request: Request) -> Response:
        return JSONResponse(await service.stored.cancel(request.path_params["id"]))

    async def response_items(request: Request) -> Response:
        page = read_page(request.query_params)
        return JSONResponse(page.of(await service.stored.items(request.path_params["id"])))

    async def metrics(_: Request) -> Response:
        servers = {"": counted()} if replicas is None else await replicas.exchange(counted())
        return Response(render(servers), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def on_request_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        return JSONResponse({"error": error.error}, status_code=error.status)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        place = request.url.path
        sentence = {
            404: f"There is nothing at {place}; this server has {', '.join(_PLACES)}.",
            405: f"{place} does not take {request.method}.",
        }.get(error.status_code, f"{error.detail}.")
        code = _CODES.get(error.status_code, "invalid_request")
        response = refusal_response(error.status_code, code, sentence)
        response.headers.update(error.headers or {})
        return response

    app = Starlette(
        routes=[
            WebSocketRoute("/v1/responses", responses_socket),
            Route(
                "/v1/responses",
                responses_post,
                methods=["POST"],
                middleware=[Middleware(Limited, most=bounds.posts)],
            ),
            Route("/v1/responses/{id}", response_one),
            Route("/v1/responses/{id}", response_delete, methods=["DELETE"]),
            Route("/v1/responses/{id}/cancel", response_cancel, methods=["POST"]),
            Route("/v1/responses/{id}/input_items", response_items),
            Route("/v1/models", models_list),
            Route("/v1/models/{model:path}", models_one),
            Route(
                "/v1/telemetry",
                telemetry,
                middleware=[Middleware(Limited, most=bounds.telemetry_streams)],
            ),
            Route("/healthz", healthz),
            Route("/metrics", metrics),
        ],
        middleware=[
            *([_cross_origin(origins)] if origins else []),
            Middleware(AccessControl, token=token, origins=origins),
        ],
        exception_handlers={
            RequestError: on_request_error,
            HTTPException: on_http_error,
        },
        lifespan=lifespan,
    )
    app.state.service = service
    return app
