"""``midstream hook``: passes an agent's hook call to the session that reviews the folder, and
waits.

The agent starts this before every edit, so it imports next to nothing.  Where no session reviews
the folder it is silent, and the agent goes on as if it had no hook.  Once a session has the call,
no answer means no: time-outs and errors of hooks let the edit pass.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # importing `typing` takes longer than the rest
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import IO, Any

HOOK_TIMEOUT_S = 600
"""How long agents wait for a hook."""
GIVE_UP_S = 580.0
"""How long this waits for a session, which answers before; see ``EditGate``."""

_CONNECT_S = 1.0
_MAX_ADDRESS_LENGTH = 100
_ENDED = "Midstream exited during the review of this edit; nothing was written. Ask the user."
_LATE = "The review of this edit is still open; nothing was written. Ask the user, then try again."


def socket_folder() -> str:
    """The folder of sessions' sockets, in the state folder; only its owner can open it."""
    folder = f"{_state_folder()}/hooks"
    if len(os.fsencode(folder)) > _MAX_ADDRESS_LENGTH - 24:  # the system allows 104 or 108 bytes
        folder = f"/tmp/midstream-{os.getuid()}-{socket_prefix(folder)}hooks"
    return folder


def _state_folder() -> str:
    """The state folder; in the usual case without what it takes to know it on every system."""
    home = os.environ.get("XDG_STATE_HOME") or f"{os.environ.get('HOME', '')}/.local/state"
    if sys.platform == "linux" and "MIDSTREAM_STATE_DIR" not in os.environ and home[0] == "/":
        return f"{home}/midstream"
    from midstream.workspace.paths import state_dir

    return str(state_dir())


def socket_prefix(root: str) -> str:
    """The prefix of socket names for a folder's sessions; ``root`` is its real path."""
    import hashlib

    return hashlib.blake2b(os.fsencode(root), digest_size=6).hexdigest() + "-"


def is_private(folder: str) -> bool:
    """Whether a folder belongs to the user and is closed to everyone else."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    own = status.st_uid == os.getuid() and not status.st_mode & 0o077
    return own and stat.S_ISDIR(status.st_mode)


def main(given: IO[bytes] | None = None, out: IO[str] | None = None) -> int:
    """Answer the hook on standard input; returns the exit code, which is always 0."""
    sockets = _sockets()
    if not sockets:
        return 0
    import json

    try:
        call: Any = json.loads((given or sys.stdin.buffer).read())
    except ValueError:
        return 0
    if isinstance(call, dict):
        answer = _answer(call, sockets)  # pyright: ignore[reportUnknownArgumentType]
        if answer is not None:
            print(json.dumps(answer), file=out or sys.stdout, flush=True)
    return 0


def ask_session(event: dict[str, Any]) -> dict[str, Any] | None:
    """The answer of the session that reviews an event's folder; ``None`` if there is none."""
    return _answer(event, _sockets())


def _sockets() -> list[str]:
    """Where sessions listen."""
    folder = socket_folder()
    try:
        names = os.listdir(folder) if is_private(folder) else []  # noqa: PTH208
    except OSError:
        names = []
    return [f"{folder}/{name}" for name in names]


def _answer(call: dict[str, Any], sockets: list[str]) -> dict[str, Any] | None:
    import socket

    for address in _addresses(call, sockets):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_CONNECT_S)
            connection.connect(address)
        except OSError:  # its session has ended
            connection.close()
            continue
        with connection:
            return _ask(connection, call)
    return None


def _ask(connection: socket.socket, call: dict[str, Any]) -> dict[str, Any] | None:
    import json

    received = bytearray()
    trouble = _ENDED
    try:
        connection.settimeout(GIVE_UP_S)
        connection.sendall(json.dumps(call).encode() + b"\n")
        while not received.endswith(b"\n") and (data := connection.recv(1 << 16)):
            received += data
        if received.endswith(b"\n"):
            return json.loads(received)["output"]
    except TimeoutError:
        trouble = _LATE
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if call.get("hook_event_name") != "PreToolUse":
        return None
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": trouble,
        }
    }


def _addresses(call: dict[str, Any], sockets: list[str]) -> Iterator[str]:
    """The sockets of sessions on a folder that holds the file or the agent's own folder."""
    seen: set[str] = set()
    for start in _places(call):
        place = start
        while place not in seen:
            seen.add(place)
            prefix = f"/{socket_prefix(place)}"
            yield from sorted((s for s in sockets if prefix in s), key=_age)
            place = os.path.dirname(place)  # noqa: PTH120


def _places(call: dict[str, Any]) -> Iterator[str]:
    """Real paths whose folders are looked through, upwards."""
    cwd = call.get("cwd")
    folder = cwd if isinstance(cwd, str) else os.getcwd()  # noqa: PTH109
    arguments: object = call.get("tool_input")
    if isinstance(arguments, dict):
        path = arguments.get("file_path")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(path, str) and "\0" not in path:
            yield os.path.dirname(os.path.realpath(os.path.join(folder, path)))  # noqa: PTH118, PTH120
    yield os.path.realpath(folder)


def _age(address: str) -> float:
    try:
        return -os.lstat(address).st_mtime
    except OSError:
        return 0.0
