"""Keys that are typed while a coding agent writes faster than anyone can read.

Run as a program, ``python -m midstream.bench.floods FLOOD``, it is the agent: it answers the first
instruction with a flood until it is ended.
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

from midstream.bench.background import Situation, typed_beside
from midstream.bench.figures import Figure

_NAME: Final = "flooding"
_FILES: Final = 3
_LINES: Final = 500_000
"""Files that the flood writes in turn, and the lines of each version."""

Update = Mapping[str, object]
"""The ``update`` of a ``session/update``."""


def _tool_calls() -> Iterator[Update]:
    """Some sixty uses of a tool a second."""
    for number in count(1):
        call = {"toolCallId": f"t{number}", "status": "completed", "kind": "read"}
        yield {"sessionUpdate": "tool_call", "title": f"Read file {number} of the folder", **call}
        time.sleep(1 / 60)


def _long_answer() -> Iterator[Update]:
    """Answers of one megabyte, as fast as they are taken."""
    while True:
        yield _said("Some **words** of an answer, with `code`.\n\n" * 25_000)


def _large_messages() -> Iterator[Update]:
    """Messages of fifteen megabytes, as fast as they are taken."""
    while True:
        yield _said("a line of code that was read\n" * (15_000_000 // 30))


def _long_list() -> Iterator[Update]:
    """A list that grows by an item every 12 ms."""
    for number in count(1):
        yield _said(f"- item **{number}** with `code` and words that go on\n")
        time.sleep(0.012)


def _changed_files() -> Iterator[Update]:
    """New files of twelve megabytes each, written again and again."""
    for number in cycle(range(_FILES)):
        text = f"a new line of text, written at {time.monotonic():.6f}\n" * _LINES
        Path(f"new_{number}.txt").write_text(text)
        yield _said(".")
        time.sleep(1)


def _said(text: str) -> Update:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "content": content}


_FLOODS: Final[Mapping[str, Callable[[], Iterator[Update]]]] = {
    "tool calls": _tool_calls,
    "an answer of many MB": _long_answer,
    "messages of 15 MB": _large_messages,
    "a long list": _long_list,
    "changes of 12 MB": _changed_files,
}


def floods(bytecode: Path, seconds: float) -> list[Figure]:
    """Key to terminal in each flood, and for how long the loop is held."""
    figures: list[Figure] = []
    for flood in _FLOODS:
        agent = shlex.join([sys.executable, "-m", "midstream.bench.floods", flood])
        steps = (("go\r", "working"), ("i", ""))
        situation = Situation(flood, ("agent", agent, "."), _NAME, steps)
        with tempfile.TemporaryDirectory() as name:
            figures += typed_beside(situation, Path(name), bytecode, seconds)
    return figures


def main() -> None:
    """Be the agent: speak the Agent Client Protocol on the pipes."""
    flood = _FLOODS[sys.argv[1]]
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["method"] == "session/prompt":
            for update in flood():
                _send(method="session/update", params={"sessionId": "s", "update": update})
        results = {
            "initialize": {"protocolVersion": 1, "agentInfo": {"name": _NAME}},
            "session/new": {"sessionId": "s"},
        }
        if "id" in asked:
            _send(id=asked["id"], result=results.get(asked["method"], {}))


def _send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
