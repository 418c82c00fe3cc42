"""``midstream mcp``: an MCP server that tells an agent the state of its review.

The Model Context Protocol over standard input and output is JSON-RPC, one message a line
(modelcontextprotocol.io/specification, 2025-06-18). Two tools and three methods suffice, so this
does without the protocol's own package, whose import takes most of a second. The answers come from
the session that reviews the folder, over the socket of its hooks.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import IO, Any, Final, cast

from midstream.agents.hook_client import ask_session

REVIEW_EVENT: Final = "MidstreamReview"
"""The kind of event that asks a session about its review."""

STATUS: Final = "review_status"
WAIT: Final = "wait_for_review"

VERSIONS: Final = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol, the newest first; these two tools are the same in all."""

MAX_NAMED: Final = 100
"""Characters of a name that an error repeats."""
MAX_WAIT_S: Final = 540
"""Most seconds that an agent may wait; many end a call after ten minutes."""

_NOBODY: Final = (
    "No review is running in this folder. The user starts one with `midstream review`; continue "
    "as usual."
)
_TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": STATUS,
        "description": "The state of the user's review of your changes: which hunks are waiting "
        "for a decision, and which of your changes the user has put back, with the reasons.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": WAIT,
        "description": "Wait until the user has decided every change of yours, then say what was "
        "put back and why. Call it when your work is done, before you report.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "seconds": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_WAIT_S,
                    "description": "How long to wait at most (300).",
                }
            },
        },
        "annotations": {"readOnlyHint": True},
    },
]


def main(given: IO[bytes] | None = None, out: IO[str] | None = None) -> int:
    """Serve until standard input ends; returns the exit code."""
    server = _McpServer(out or sys.stdout)
    for line in given or sys.stdin.buffer:
        if line.strip():
            server.take(line)
    return 0


class _McpServer:
    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._lock = threading.Lock()

    def take(self, line: bytes) -> None:
        """Answer a message, or begin to."""
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError):
            self._say({"id": None, "error": {"code": -32700, "message": "This is not JSON."}})
            return
        if not isinstance(message, dict):
            self._say({"id": None, "error": {"code": -32600, "message": "This is not a request."}})
            return
        request = cast("dict[str, Any]", message)
        if "id" not in request or "method" not in request:
            return  # a notification, or an answer to nothing that was asked
        if not isinstance(request["id"], (str, int)):
            self._say({"id": None, "error": {"code": -32600, "message": "This is no id."}})
            return
        given = request.get("params")
        params = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        if request["method"] == "tools/call":
            # A call may wait for minutes, and a ping is to be answered meanwhile.
            work = threading.Thread(target=self._call, args=(request["id"], params), daemon=True)
            work.start()
            return
        self._answer(request["id"], str(request["method"]), params)

    def _answer(self, asked: object, method: str, params: dict[str, Any]) -> None:
        if method == "initialize":
            wanted = params.get("protocolVersion")
            version = wanted if wanted in VERSIONS else VERSIONS[0]
            result: dict[str, Any] = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "midstream", "version": _version()},
            }
        elif method == "tools/list":
            result = {"tools": _TOOLS}
        elif method == "ping":
            result = {}
        else:
            self._say(
                {
                    "id": asked,
                    "error": {"code": -32601, "message": f"No method {method[:MAX_NAMED]}."},
                }
            )
            return
        self._say({"id": asked, "result": result})

    def _call(self, asked: object, params: dict[str, Any]) -> None:
        name = params.get("name")
        if name not in (STATUS, WAIT):
            self._say(
                {
                    "id": asked,
                    "error": {"code": -32602, "message": f"No tool {str(name)[:MAX_NAMED]}."},
                }
            )
            return
        given = params.get("arguments")
        arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        seconds = wait_seconds(arguments.get("seconds"))
        try:
            event = {
                "hook_event_name": REVIEW_EVENT,
                "cwd": os.getcwd(),  # noqa: PTH109
                "tool_name": name,
                "tool_input": {"seconds": seconds},
            }
            answer = ask_session(event)
        except Exception as error:  # An agent that asked waits until it gets some answer.
            self._say({"id": asked, "error": {"code": -32603, "message": f"No answer: {error}."}})
            return
        text = _NOBODY if answer is None else str(answer.get("text", ""))
        self._say({"id": asked, "result": {"content": [{"type": "text", "text": text}]}})

    def _say(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message})
        with self._lock:
            print(line, file=self._out, flush=True)


def wait_seconds(given: object) -> float:
    """How long to wait; ``given`` may be anything, even an integer too large for a float."""
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
        return 300.0
    return float(max(1, min(given, MAX_WAIT_S)))


def _version() -> str:
    from importlib.metadata import version

    return version("midstream")
