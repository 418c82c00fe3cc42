"""The Responses API over HTTP, tolerant of what engines leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    TERMINALS,
    TEXT_DELTAS,
    TOOL_DELTA,
    ServerEvent,
    WireItem,
    WireResponse,
    decode_event,
)
from midstream.responses.http_api import HttpApi
from midstream.responses.tool_arguments import SCHEMA, ArgumentReader, as_arguments

_OWN_ID = "resp_local"
_OWN_ITEM = "item_local"
_ARGUMENTS = "response.function_call_arguments.delta"


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
    ``response.created`` or without item ids, some end with ``[DONE]`` alone. There is one response
    per request, so what is missing can be told.
    """

    def __init__(self) -> None:
        self._id = ""
        self._item = ""
        self._arguments = ArgumentReader()
        self._ended = False

    def take(self, name: str, data: bytes) -> list[ServerEvent]:
        if data == b"[DONE]":
            if self._ended or not self._id:
                return []
            self._ended = True
            response = WireResponse(id=self._id, status="completed", output=[])
            return [ServerEvent(type="response.completed", response=response)]
        event = decode_event(data)
        if not event.type and name:
            event = msgspec.structs.replace(event, type=name)
        if event.item is not None:
            event = msgspec.structs.replace(event, item=_as_custom(event.item))
        if event.response is not None and event.response.output:
            items = [_as_custom(item) for item in event.response.output]
            response = msgspec.structs.replace(event.response, output=items)
            event = msgspec.structs.replace(event, response=response)
        events: list[ServerEvent] = []
        response = event.response
        if not self._id and event.type.startswith("response."):
            self._id = (response.id if response is not None else "") or _OWN_ID
            if event.type != "response.created":
                response = WireResponse(id=self._id, status="in_progress")
                events.append(ServerEvent(type="response.created", response=response))
        if event.type in TERMINALS:
            self._ended = True
        if event.response is not None and event.response.id != self._id:
            response = msgspec.structs.replace(event.response, id=self._id)
            event = msgspec.structs.replace(event, response=response)
        if event.item is not None and not event.item.id:
            item = msgspec.structs.replace(event.item, id=_OWN_ITEM)
            event = msgspec.structs.replace(event, item=item)
        if event.type == "response.output_item.added" and event.item is not None:
            self._item = event.item.id or ""
            self._arguments = ArgumentReader()
        elif event.type == _ARGUMENTS and self._item and isinstance(event.delta, str):
            text = self._arguments.feed(event.delta)
            if text:
                event = msgspec.structs.replace(
                    event, type=TOOL_DELTA, delta=text, item_id=self._item
                )
        elif event.type in TEXT_DELTAS:
            if not self._item:
                self._item = event.item_id or _OWN_ITEM
                item = WireItem(id=self._item)
                events.append(ServerEvent(type="response.output_item.added", item=item))
            event = msgspec.structs.replace(event, item_id=self._item)
        return [*events, event]

    def end(self) -> list[ServerEvent]:
        return []  # Without an event that says so, it has not ended.


RESPONSES_API: Final = HttpApi("Responses", "/responses", _body, _ResponsesReader)
