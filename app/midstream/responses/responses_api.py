"""The Responses API over HTTP, tolerant of fields that engines leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from midstream.responses.endings import UNSAID
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    TERMINALS,
    TEXT_DELTAS,
    TOOL_DELTA,
    IncompleteDetails,
    ServerEvent,
    WireError,
    WireItem,
    WireResponse,
    decode_event,
)
from midstream.responses.frames import Frame
from midstream.responses.http_api import HttpApi
from midstream.responses.liberal import Liberal
from midstream.responses.tool_arguments import SCHEMA, ArgumentReader, as_arguments

_OWN_ID = "resp_local"
_OWN_ITEM = "item_local"
_ARGUMENTS = "response.function_call_arguments.delta"
_response = Liberal(WireResponse)


def _body(frame: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    body: dict[str, Any] = {name: value for name, value in frame.items() if name != "type"}
    body["stream"] = True
    if endpoint.dialect.patch_tool:
        return body
    # Engines that have this API know functions and no custom tools.
    if tools := body.get("tools"):
        body["tools"] = [_function(tool) for tool in tools]
    return body | {"input": [_item(item) for item in body["input"]]}


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: tool[name] for name in ("name", "description") if name in tool}
    return {"type": "function", **told, "parameters": SCHEMA, "strict": True}


def _item(item: Mapping[str, Any]) -> Mapping[str, Any]:
    if item["type"] == "custom_tool_call":
        given = {"name": item["name"], "arguments": as_arguments(item["input"])}
        return {"type": "function_call", "call_id": item["call_id"], **given}
    if item["type"] == "custom_tool_call_output":
        return {**item, "type": "function_call_output"}
    return item


def _as_custom(item: WireItem) -> WireItem:
    """A call of a function as the call of a custom tool that it stands for."""
    if item.type != "function_call":
        return item
    reader = ArgumentReader()
    text = reader.feed(item.arguments or "")
    return msgspec.structs.replace(item, type="custom_tool_call", input=text + reader.end())


class _ResponsesReader:
    """The events of one answer, whatever the server leaves out.

    Engines differ: some name the event only in the ``event`` field, some send text before any
    ``response.created`` or without item ids, some send one whole response. There is one response
    per request, so what is missing can be told.
    """

    def __init__(self) -> None:
        self.call_notes: dict[str, Any] = {}
        self._id = ""
        self._item = ""
        self._arguments = ArgumentReader()
        self._begun = False
        self.finished = False

    def take(self, frame: Frame) -> list[ServerEvent]:
        if frame.closes:
            return self.end()
        event = decode_event(frame.data or b"{}")
        kind = event.type or frame.name
        if not kind and not frame.framed:
            return self._whole(frame.data)
        if kind == "error" or (not kind and event.error is not None):
            error = event.error or WireError(event.code, event.message or "")
            return self._fail(error)
        event = msgspec.structs.replace(event, type=kind)
        if event.item is not None:
            event = msgspec.structs.replace(event, item=_as_custom(event.item))
        if event.response is not None:
            event = msgspec.structs.replace(event, response=self._own(event.response))
        events = self._begin() if kind.startswith("response.") else []
        if kind == "response.created":
            return events
        if kind in TERMINALS:
            self.finished = True
            if event.response is None:
                response = WireResponse(id=self._id, status=kind.removeprefix("response."))
                event = msgspec.structs.replace(event, response=response)
        if event.item is not None and not event.item.id:
            item = msgspec.structs.replace(event.item, id=_OWN_ITEM)
            event = msgspec.structs.replace(event, item=item)
        if kind == "response.output_item.added" and event.item is not None:
            self._item = event.item.id or ""
            self._arguments = ArgumentReader()
        elif kind == _ARGUMENTS and self._item and isinstance(event.delta, str):
            text = self._arguments.feed(event.delta)
            if text:
                event = msgspec.structs.replace(
                    event, type=TOOL_DELTA, delta=text, item_id=self._item
                )
        elif kind in TEXT_DELTAS:
            if not self._item:
                self._item = event.item_id or _OWN_ITEM
                item = WireItem(id=self._item)
                events.append(ServerEvent(type="response.output_item.added", item=item))
            event = msgspec.structs.replace(event, item_id=self._item)
        return [*events, event]

    def end(self) -> list[ServerEvent]:
        if self.finished or not self._id:
            return []
        self.finished = True
        details = IncompleteDetails(UNSAID)
        response = WireResponse(id=self._id, status="incomplete", incomplete_details=details)
        return [ServerEvent(type="response.incomplete", response=response)]

    def _own(self, response: WireResponse) -> WireResponse:
        self._id = self._id or response.id or _OWN_ID
        items = None if response.output is None else [_as_custom(i) for i in response.output]
        return msgspec.structs.replace(response, id=self._id, output=items)

    def _begin(self) -> list[ServerEvent]:
        if self._begun:
            return []
        self._begun = True
        self._id = self._id or _OWN_ID
        response = WireResponse(id=self._id, status="in_progress")
        return [ServerEvent(type="response.created", response=response)]

    def _whole(self, data: bytes) -> list[ServerEvent]:
        """A response in place of a stream of events."""
        response = self._own(_response.decode(data))
        self.finished = True
        kind = f"response.{response.status}"
        if kind not in TERMINALS:
            kind = "response.incomplete"
        return [*self._begin(), ServerEvent(type=kind, response=response)]

    def _fail(self, error: WireError) -> list[ServerEvent]:
        events = self._begin()
        if self.finished:
            return []
        self.finished = True
        response = WireResponse(id=self._id, status="failed", error=error)
        return [*events, ServerEvent(type="response.failed", response=response)]


RESPONSES_API: Final = HttpApi("Responses", "/responses", _body, _ResponsesReader)
