"""A coding agent that plays a script over the Agent Client Protocol.

``python -m tests.helpers.scripted_agent SCRIPT LOG``: SCRIPT is JSON, a list of steps for each
method; ``"METHOD 2"`` are the steps of its second request, if they differ.  What the client sends
goes to LOG, one JSON message per line.

Steps: ``{"result": …}`` answers the request; ``{"error": {…}}`` refuses it; ``{"update": {…}}``
sends an update; ``{"ask": {…}}`` asks for permission and waits for the answer (an ``id`` may be
given); ``{"until": method}`` waits for a message, ``null`` for a reply, and
``{"reply": …}`` answers it, ``{"refuse": {…}}`` with an error;
``{"raw": text}`` writes text as it is; ``{"log": text}`` writes to standard error;
``{"write": {path: text}}`` writes files; ``{"edit": [[path, old, new], …]}`` replaces text in
files, or the files, if the last question was answered with yes; ``{"file": path}`` waits until
there is such a file; ``{"spawn": file}`` starts a child that stays, and writes
its process id; ``{"exit": code}`` ends the agent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from queue import SimpleQueue
from typing import Any

SESSION = "s-1"
BEGIN = {
    "initialize": [
        {
            "result": {
                "protocolVersion": 1,
                "agentCapabilities": {"loadSession": True},
                "agentInfo": {"name": "scripted", "title": "Scripted", "version": "1.2.3"},
                "authMethods": [{"id": "a", "name": "A website"}],
            }
        }
    ],
    "session/new": [{"result": {"sessionId": SESSION}}],
}
"""A script's beginning; ``{**BEGIN, "session/prompt": [...]}``."""


def command(folder: Path, script: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The command that plays a script; the log is ``folder / "agent.log"``."""
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    return [sys.executable, __file__, str(folder / "script.json"), str(folder / "agent.log")]


def sent(folder: Path) -> list[dict[str, Any]]:
    """What the client has sent so far."""
    path = folder / "agent.log"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def _read(inbox: SimpleQueue[dict[str, Any] | None], log: Path) -> None:
    with log.open("a", encoding="utf-8") as file:
        for line in sys.stdin:
            file.write(line)
            file.flush()
            inbox.put(json.loads(line))
    inbox.put(None)


def _is_yes(reply: dict[str, Any], options: list[dict[str, Any]]) -> bool:
    """Whether a question was answered with an option that allows."""
    chosen = reply.get("result", {}).get("outcome", {}).get("optionId")
    return any(o["optionId"] == chosen and o["kind"].startswith("allow") for o in options)


def _edit(path: Path, old: str | None, new: str) -> None:
    if old:
        before = path.read_text("utf-8")
        assert old in before
        new = before.replace(old, new, 1)
    path.write_text(new, "utf-8")


def _main() -> None:
    later: dict[str, Any] | None = None
    script = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    inbox: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
    threading.Thread(target=_read, args=(inbox, Path(sys.argv[2])), daemon=True).start()
    questions = 0
    allowed = False
    requests: Counter[str] = Counter()
    while (message := inbox.get()) is not None:
        method = message.get("method") or ""
        requests[method] += 1
        for step in script.get(f"{method} {requests[method]}", script.get(method, ())):
            ((what, value),) = ((key, step[key]) for key in step if key != "id")
            if what in ("result", "error"):
                _say({"id": message["id"], what: value})
            elif what == "update":
                _say(
                    {"method": "session/update", "params": {"sessionId": SESSION, "update": value}}
                )
            elif what == "ask":
                questions += 1
                number = step.get("id", questions)
                params = {"sessionId": SESSION, **value}
                _say({"id": number, "method": "session/request_permission", "params": params})
                while (reply := inbox.get()) is not None and reply.get("id") != number:
                    pass
                allowed = _is_yes(reply or {}, value.get("options", ()))
            elif what == "until":
                while (later := inbox.get()) is not None and later.get("method") != value:
                    pass
            elif what in ("reply", "refuse"):
                assert later is not None
                _say({"id": later["id"], "result" if what == "reply" else "error": value})
            elif what == "raw":
                sys.stdout.write(value)
                sys.stdout.flush()
            elif what == "log":
                sys.stderr.write(value)
                sys.stderr.flush()
            elif what == "write":
                for path, text in value.items():
                    Path(path).write_text(text, "utf-8")
            elif what == "edit":
                for path, old, new in value if allowed else ():
                    _edit(Path(path), old, new)
            elif what == "file":
                while not Path(value).exists():
                    time.sleep(0.005)
            elif what == "spawn":
                child = subprocess.Popen(
                    [sys.executable, "-c", "import time; time.sleep(600)"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                Path(value).write_text(str(child.pid), "utf-8")
            elif what == "exit":
                os._exit(value)


if __name__ == "__main__":
    _main()
