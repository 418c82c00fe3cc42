"""A server on loopback that plays the model behind a real coding agent, by a script.

It speaks the APIs that the agents speak: Anthropic Messages, Gemini, Chat Completions and
Responses.  Which step is due is read off the request: as many as it holds results of tools.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeAlias


@dataclass(frozen=True)
class Say:
    """The model says something, which ends its answer."""

    text: str


@dataclass(frozen=True)
class Use:
    """The model uses a tool; ``given`` is text for a tool that takes free text."""

    tool: str
    given: dict[str, Any] | str


Step: TypeAlias = Say | Use


def codex_settings(url: str) -> str:
    """Codex' `config.toml` with which the server at an address is its model."""
    lines = (
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
    )
    return "\n".join(lines)


class ScriptedModel:
    """The server; a context manager.

    Args:
        steps: What the model does; the last one stays.

    Attributes:
        requests: Bodies of the requests for text, oldest first.
    """

    def __init__(self, *steps: Step) -> None:
        self.steps: Sequence[Step] = steps
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Address without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def step(self, results: int, tools: set[str]) -> Step:
        """The step after this number of tool results; requests without its tool get a word."""
        due = self.steps[min(results, len(self.steps) - 1)]
        return Say("ok") if isinstance(due, Use) and due.tool not in tools else due


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self._answer({})

        def do_GET(self) -> None:
            self._answer({"data": [], "models": []})

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body: dict[str, Any] = json.loads(self.rfile.read(size) or b"{}")
            path = self.path.lower()
            if "count" in path:
                self._answer({"input_tokens": 10, "totalTokens": 10})
            elif "/messages" in path:
                model.requests.append(body)
                self._anthropic(body)
            elif "generatecontent" in path:
                model.requests.append(body)
                self._gemini(body, streams="stream" in path)
            elif "/chat/completions" in path:
                model.requests.append(body)
                self._chat(body)
            elif "/responses" in path:
                model.requests.append(body)
                self._responses(body)
            else:
                self._answer({})

        def _answer(self, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, *events: object, named: bool = False) -> None:
            """Send server-sent events; with ``named``, each is called by its ``type``."""
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events:
                if named and isinstance(event, dict):
                    self.wfile.write(f"event: {event['type']}\n".encode())
                data = event if isinstance(event, str) else json.dumps(event)
                self.wfile.write(f"data: {data}\n\n".encode())
            self.close_connection = True

        def _anthropic(self, body: dict[str, Any]) -> None:
            blocks = (
                block
                for message in body["messages"]
                if isinstance(message["content"], list)
                for block in message["content"]
            )
            results = sum(block.get("type") == "tool_result" for block in blocks)
            step = model.step(results, {tool.get("name") for tool in body.get("tools", ())})
            usage = {"input_tokens": 10, "output_tokens": 5}
            message = {
                "id": f"msg_{len(model.requests)}",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "usage": usage,
            }
            if not body.get("stream"):
                text = step.text if isinstance(step, Say) else "ok"
                content = [{"type": "text", "text": text}]
                self._answer({**message, "content": content, "stop_reason": "end_turn"})
                return
            if isinstance(step, Say):
                block: dict[str, Any] = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": step.text}
                reason = "end_turn"
            else:
                name = f"toolu_{len(model.requests):04}"
                block = {"type": "tool_use", "id": name, "name": step.tool, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(step.given)}
                reason = "tool_use"
            self._stream(
                {
                    "type": "message_start",
                    "message": {**message, "content": [], "stop_reason": None},
                },
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
                {"type": "message_stop"},
                named=True,
            )

        def _gemini(self, body: dict[str, Any], *, streams: bool) -> None:
            parts = (part for each in body["contents"] for part in each.get("parts", ()))
            declared = (
                tool
                for group in body.get("tools", ())
                for tool in group.get("functionDeclarations", ())
            )
            step = model.step(
                sum("functionResponse" in part for part in parts),
                {tool["name"] for tool in declared},
            )
            wanted = body.get("generationConfig", {}).get("responseJsonSchema")
            if wanted:  # a question of its own, such as how hard the request is
                words = {
                    name: 1 if each.get("type") == "INTEGER" else "ok"
                    for name, each in wanted["properties"].items()
                }
                part: dict[str, Any] = {"text": json.dumps(words)}
            elif isinstance(step, Say):
                part = {"text": step.text}
            else:
                name = f"call{len(model.requests)}"
                part = {"functionCall": {"name": step.tool, "args": step.given, "id": name}}
            content = {"role": "model", "parts": [part]}
            answer = {
                "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
                "usageMetadata": {
                    "promptTokenCount": 5,
                    "candidatesTokenCount": 5,
                    "totalTokenCount": 10,
                },
                "modelVersion": "scripted",
            }
            if streams:
                self._stream(answer)
            else:
                self._answer(answer)

        def _chat(self, body: dict[str, Any]) -> None:
            step = model.step(
                sum(message["role"] == "tool" for message in body["messages"]),
                {tool["function"]["name"] for tool in body.get("tools", ())},
            )
            if isinstance(step, Say):
                delta: dict[str, Any] = {"content": step.text}
            else:
                function = {"name": step.tool, "arguments": json.dumps(step.given)}
                name = f"call_{len(model.requests)}"
                call = {"index": 0, "id": name, "type": "function", "function": function}
                delta = {"tool_calls": [call]}
            reason = "stop" if isinstance(step, Say) else "tool_calls"
            chunk = {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": body["model"],
            }
            usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
            end = {"index": 0, "delta": {}, "finish_reason": reason}
            self._stream(
                {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
                {**chunk, "choices": [end], "usage": usage},
                "[DONE]",
            )

        def _responses(self, body: dict[str, Any]) -> None:
            given = body["input"]
            results = sum(item.get("type", "").endswith("_call_output") for item in given)
            offered = [*body.get("tools", ())]
            for item in given:
                for tool in item.get("tools", ()):
                    offered += tool.get("tools", (tool,))
            step = model.step(results, {tool.get("name", "") for tool in offered})
            number = len(model.requests)
            item: dict[str, Any]
            if isinstance(step, Say):
                text = {"type": "output_text", "text": step.text, "annotations": []}
                item = {
                    "type": "message",
                    "id": f"m{number}",
                    "role": "assistant",
                    "content": [text],
                }
            elif isinstance(step.given, str):
                item = {
                    "type": "custom_tool_call",
                    "id": f"t{number}",
                    "call_id": f"c{number}",
                    "name": step.tool,
                    "input": step.given,
                }
            else:
                item = {
                    "type": "function_call",
                    "id": f"t{number}",
                    "call_id": f"c{number}",
                    "name": step.tool,
                    "arguments": json.dumps(step.given),
                }
            usage = {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 15,
            }
            response = {"id": f"r{number}", "object": "response", "status": "in_progress"}
            done = {**response, "status": "completed", "output": [item], "usage": usage}
            self._stream(
                {"type": "response.created", "response": response},
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": done},
                named=True,
            )

    return Handler
