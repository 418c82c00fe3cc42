"""Keys that are typed while something large or endless goes on: a search, a download, a template.

What these need from outside comes from a server on loopback: a hub whose file comes at 50 MB a
second, and a model that searches again and again.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Final

from midstream.bench.figures import Figure, at_most, beside, percentile
from midstream.bench.screen_runs import readings, typed_times
from midstream.bench.terminal import TerminalProgram
from midstream.hub.published import published_models
from midstream.resources import default_model

_FILES: Final = 2_000
_LINES: Final = 1_600
"""Of each file; 100 MB in all."""
_CHUNK: Final = bytes(1 << 20)
_WEIGHTS: Final = 4 << 30
"""Bytes of the model file that the hub offers."""
_ENDLESS: Final = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
_SEARCH: Final = {"name": "search", "arguments": json.dumps({"input": "needle"})}


@dataclass(frozen=True, slots=True)
class Situation:
    """How the program is started and brought to where keys are measured.

    Attributes:
        name: What goes on meanwhile.
        arguments: Of the program.
        shows: What the screen says once it runs.
        steps: Keys, each with what the screen says then, ``""`` where that differs.
    """

    name: str
    arguments: Sequence[str]
    shows: str
    steps: Sequence[tuple[str, str]]


def typed_beside(
    situation: Situation, place: Path, bytecode: Path, seconds: float, *, hub: str = ""
) -> list[Figure]:
    """Key to terminal in a situation, and for how long the loop is held.

    Args:
        situation: What goes on.
        place: A folder; the program runs in ``work`` in it.
        bytecode: Where Python keeps what it has compiled.
        seconds: How long is typed.
        hub: The address of the model hub, if one is asked.
    """
    (place / "work").mkdir(exist_ok=True)
    beats = place / "beats.json"
    command = [sys.executable, "-m", "midstream.bench.beat", str(beats), *situation.arguments]
    environment = {
        "HF_ENDPOINT": hub,
        "MIDSTREAM_CONFIG": str(place / "config.toml"),
        "MIDSTREAM_STATE_DIR": str(place / "state"),
        "MIDSTREAM_THEME": "midnight",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "XDG_DATA_HOME": str(place / "data"),
    }
    with TerminalProgram(command, environment=environment, folder=place / "work") as program:
        program.wait_for(situation.shows, 60)
        program.settle()
        for keys, shows in situation.steps:
            since = len(program.output)
            program.write(keys)
            program.wait_for(shows, 60, since=since)
            program.drain(1)
        readings(program, beats)
        times = typed_times(program, round(seconds * 20), seconds)
        held = [1000 * busy for busy in readings(program, beats)["busy_s"]]
    name = situation.name
    return [
        beside(f"key to terminal, median, {name}", median(times), "ms"),
        at_most(f"key to terminal, p95, {name}", percentile(times, 95), "ms", 50),
        beside(f"key to terminal, longest, {name}", max(times), "ms"),
        beside(f"loop held, longest, {name}", max(held), "ms cpu"),
    ]


def large_work(bytecode: Path, seconds: float) -> list[Figure]:
    """The same for what the program itself does that is large, or never ends."""
    figures: list[Figure] = []
    for prepare in (_search, _download, _template):
        with tempfile.TemporaryDirectory() as name, _serving() as address:
            situation = prepare(Path(name), address)
            figures += typed_beside(situation, Path(name), bytecode, seconds, hub=address)
    return figures


def _search(place: Path, address: str) -> Situation:
    for number in range(_FILES):
        folder = place / "work" / f"folder_{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"value_{n} = compute({n}, {number})\n" for n in range(_LINES))
        (folder / f"file_{number}.py").write_text(text)
    start = [".", "--endpoint", f"{address}/v1", "--transport", "chat", "--model", "finder"]
    steps = [("? where is it\r", "1 yes"), ("1", "search needle"), ("i", "")]
    return Situation("a search over 100 MB", start, "finder", steps)


def _download(_place: Path, _address: str) -> Situation:
    name = published_models()[0].name
    choices = [("\x1b", ""), ("M", "On this machine"), ("d", name), ("\r", "download it")]
    steps = [*choices, ("1", "%"), ("n", "an address"), ("4", "Address")]
    return Situation("a download", ["."], "ready", steps)


def _template(place: Path, _address: str) -> Situation:
    folder = place / "endless"
    shutil.copytree(default_model(), folder)
    (folder / "midstream.toml").write_text('name = "endless"\nprompt = "chat"\n')
    (folder / "chat_template.jinja").write_text("{% if messages %}" + _ENDLESS + "{% endif %}")
    (place / "work").mkdir()
    (place / "work" / "a.py").write_text("def f():\n    return 1\n")
    steps = [("i", ""), ("go\r", "reading"), ("i", "")]
    return Situation("a template without end", ["a.py", "--model", str(folder)], "ready", steps)


@contextmanager
def _serving() -> Generator[str]:
    """A server that is the hub and the model; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers the hub's requests, and those of the Chat Completions API."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def do_GET(self) -> None:
        """Describe or send the one model of the hub."""
        if self.path.startswith("/api/models/"):
            self._send(_listing(self.path.split("?")[0].removeprefix("/api/models/")))
        elif self.path.endswith("/v1/models"):
            self._send({"object": "list", "data": [{"id": "finder", "object": "model"}]})
        elif self.path.endswith(".json"):
            self._send({})
        elif self.path.endswith(".onnx"):
            self.send_response(200)
            self.send_header("Content-Length", str(_WEIGHTS))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # the client has read enough
                while True:
                    self.wfile.write(_CHUNK)
                    time.sleep(1 / 50)
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Search, whatever is asked."""
        self.rfile.read(int(self.headers["Content-Length"]))
        call = {"index": 0, "id": f"c{time.monotonic_ns()}", "type": "function"}
        delta = {"role": "assistant", "tool_calls": [{**call, "function": _SEARCH}]}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for content, reason in ((delta, None), ({}, "tool_calls")):
            choice = {"index": 0, "delta": content, "finish_reason": reason}
            event = {"id": "x", "model": "finder", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _listing(repository: str) -> dict[str, object]:
    """What a hub says about a model with weights without end."""
    texts = ("config.json", "tokenizer.json", "tokenizer_config.json")
    weights = {"rfilename": "onnx/model_q4.onnx", "size": _WEIGHTS}
    lfs = {"sha256": "0" * 64, "size": _WEIGHTS, "pointerSize": 134}
    files = [{"rfilename": name, "size": 2} for name in texts]
    return {"id": repository, "sha": "a" * 40, "siblings": [*files, {**weights, "lfs": lfs}]}
