"""``midstream hook``: passes an agent's hook call to the session that reviews the folder, and
waits.

The agent starts this before every edit, so it imports next to nothing.  Where no session reviews
the folder it is silent, and the agent goes on as if it had no hook.  Where one does, everything but
its own yes means no: agents take a time-out, an error or silence of a hook for consent.  So what
cannot be read, sent or answered is denied here.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # importing `typing` takes longer than the rest
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO, Any

HOOK_TIMEOUT_S = 600
"""How long agents wait for a hook."""
GIVE_UP_S = 580.0
"""How long this waits for a session, which answers before; see ``EditGate``."""

MAX_EVENT_BYTES = 8_000_000
"""Bytes of a call; a longer one is denied."""
MAX_EVENT_VALUES = 100_000
"""A call of more values is denied too: it takes long to read."""

_MAX_ADDRESS_LENGTH = 100
"""Bytes of a socket's path that every system takes."""
_MAX_DEPTH = 16
"""Levels of a tool's input that are searched for the names of files."""
_MAX_GUESSES = 200
"""Paths that are taken from a call that cannot be read."""
_OPEN_TO_OTHERS = (
    "Midstream reviews this folder, but others can open the folder in which it is asked "
    "({folder}); nothing was written. Tell the user to close it with chmod 700."
)
_ENDED = "Midstream exited during the review of this edit; nothing was written. Ask the user."
_LATE = "The review of this edit is still open; nothing was written. Ask the user, then try again."
_UNREADABLE = (
    "Midstream reviews this folder and cannot read this call of a tool{why}; nothing was written. "
    "Make the edit in another form, as text and in smaller steps."
)
_OTHER_EVENTS = frozenset({
    "Notification", "PostCompact", "PostToolUse", "PostToolUseFailure", "PreCompact",
    "SessionEnd", "SessionStart", "Setup", "Stop", "SubagentStart", "SubagentStop",
    "UserPromptSubmit",
})  # fmt: skip
"""Hooks after which nothing is written; a hook of any other name may come before an edit."""


def precedes_tool(kind: object) -> bool:
    """Whether a tool may run after a hook of this kind."""
    return not (isinstance(kind, str) and kind in _OTHER_EVENTS)


def refusal(reason: str) -> dict[str, Any]:
    """The answer that keeps a tool from running; the model reads the reason."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def unreadable(why: str = "") -> dict[str, Any]:
    """The refusal of a call that cannot be read."""
    return refusal(_UNREADABLE.format(why=f" ({why})" if why else ""))


def socket_folder() -> str:
    """The folder of sessions' sockets, in the state folder; only its owner can open it."""
    folder = f"{_state_folder()}/hooks"
    if len(os.fsencode(folder)) > _MAX_ADDRESS_LENGTH - 24:  # the system allows 104 or 108 bytes
        folder = f"/tmp/midstream-{os.getuid()}-{socket_prefix(folder)}hooks"
    return folder


def _state_folder() -> str:
    """The state folder; in the usual case without what it takes to know it on every system."""
    given = os.environ.get("MIDSTREAM_STATE_DIR")
    if given and given[0] == "/" and given == os.path.normpath(given):
        return given
    home = os.environ.get("XDG_STATE_HOME") or f"{os.environ.get('HOME', '')}/.local/state"
    if sys.platform == "linux" and not given and home[0] == "/":
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
    answer: dict[str, Any] | None
    raw = b""
    sockets: list[str] | None = None
    try:
        sockets = _sockets()
        if not sockets:
            return 0
        raw = (given or sys.stdin.buffer).read(MAX_EVENT_BYTES + 1)
        answer = _answer_to(raw, sockets)
    except (BlockingIOError, TimeoutError):
        answer = refusal(_LATE)
    except (Exception, KeyboardInterrupt) as error:
        answer = _answer_after(error, raw, sockets)
    if answer is not None:
        import json

        print(json.dumps(answer), file=out or sys.stdout, flush=True)
    return 0


def excess(raw: bytes) -> str:
    """The limit that a call exceeds, ``""`` if it can be read."""
    if len(raw) > MAX_EVENT_BYTES:
        return f"it has more than {MAX_EVENT_BYTES // 10**6} MB"
    if _signs(raw) > MAX_EVENT_VALUES:
        import re

        if _signs(re.sub(rb'"(?:[^"\\]++|\\.)*+"', b"", raw)) > MAX_EVENT_VALUES:
            return f"it has more than {MAX_EVENT_VALUES:,} values"
    return ""


def _signs(raw: bytes) -> int:
    """Characters before each value; they occur in texts as well."""
    return sum(map(raw.count, (b",", b"[", b"{")))


def ask_session(event: dict[str, Any]) -> dict[str, Any] | None:
    """The answer of the session that reviews an event's folder; ``None`` if there is none."""
    for connection in _listening(_places(event), _sockets()):
        return _ask(connection, event, None)
    return None


def _answer_to(raw: bytes, sockets: list[str]) -> dict[str, Any] | None:
    """The answer to a call as the agent sends it, ``None`` to say nothing."""
    import json

    call: object = None
    too_long = excess(raw)
    try:
        if not too_long:
            call = json.loads(raw)
    except (ValueError, RecursionError):
        pass
    if not isinstance(call, dict):
        for connection in _listening(_guessed_places(raw), sockets):
            connection.close()
            return unreadable(too_long)
        return None
    event: dict[str, Any] = call  # pyright: ignore[reportUnknownVariableType]
    for connection in _listening(_places(event), sockets):
        before = precedes_tool(event.get("hook_event_name"))
        return _ask(connection, event, refusal if before else None)
    return None


def _answer_after(
    error: BaseException, raw: bytes, sockets: list[str] | None
) -> dict[str, Any] | None:
    """The answer to a call that this failed at: no, unless it is sure that no session listens."""
    try:
        if sockets is not None and not any(True for _ in _listening(_guessed_places(raw), sockets)):
            return None
    except Exception as another:
        error = another
    return unreadable(type(error).__name__)


def _sockets() -> list[str]:
    """Where sessions listen; they open no folder of another user."""
    folder = socket_folder()
    try:
        status = os.lstat(folder)
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            return []
        return [f"{folder}/{name}" for name in os.listdir(folder)]  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _listening(places: Iterable[str], sockets: list[str]) -> Iterator[socket.socket]:
    """Connections to the sessions that review a folder above one of the places, nearest first."""
    import socket
    import time

    until = time.monotonic() + GIVE_UP_S
    for address in _addresses(places, sockets):
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.settimeout(1.0)
                connection.connect(address)
            except (BlockingIOError, InterruptedError, TimeoutError):
                # It listens, and others wait: no answer is not consent.
                if time.monotonic() > until:
                    connection.close()
                    raise
                time.sleep(0.05)
                continue
            except (ConnectionRefusedError, FileNotFoundError):  # its session has ended
                connection.close()
                break
            yield connection
            break


def _ask(
    connection: socket.socket,
    event: dict[str, Any],
    refused: Callable[[str], dict[str, Any]] | None,
) -> dict[str, Any] | None:
    """The session's answer; without one, what ``refused`` makes of the reason."""
    import json

    received = bytearray()
    trouble = _ENDED
    with connection:
        if not is_private(folder := socket_folder()):
            return refused and refused(_OPEN_TO_OTHERS.format(folder=folder))
        try:
            # Text that is no Unicode cannot be sent, and cannot be reviewed.
            line = json.dumps(event, ensure_ascii=False).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            return refused and unreadable(type(error).__name__)
        try:
            connection.settimeout(GIVE_UP_S)
            connection.sendall(line)
            while not received.endswith(b"\n") and (data := connection.recv(1 << 16)):
                received += data
            if received.endswith(b"\n"):
                return json.loads(received)["output"]
        except TimeoutError:
            trouble = _LATE
        except (OSError, ValueError, KeyError, TypeError):
            pass
    return refused and refused(trouble)


def _addresses(places: Iterable[str], sockets: list[str]) -> Iterator[str]:
    """The sockets of sessions on a folder that holds one of the places."""
    seen: set[str] = set()
    for start in places:
        place = start
        while place not in seen:
            seen.add(place)
            prefix = f"/{socket_prefix(place)}"
            yield from sorted((s for s in sockets if prefix in s), key=_age)
            place = os.path.dirname(place)  # noqa: PTH120


def _places(call: dict[str, Any]) -> Iterator[str]:
    """Real paths whose folders are looked through, upwards."""
    cwd = call.get("cwd")
    here = _working_folder()
    folder = os.path.join(here, cwd) if isinstance(cwd, str) else here  # noqa: PTH118
    for path in _named(call.get("tool_input"), 0):
        for name in {path, os.path.expanduser(path)}:  # noqa: PTH111
            try:
                yield os.path.dirname(os.path.realpath(os.path.join(folder, name)))  # noqa: PTH118, PTH120
            except ValueError:  # no path: a NUL, or half a character
                continue
    try:  # noqa: SIM105 - importing contextlib takes longer than all of this
        yield os.path.realpath(folder)
    except ValueError:
        pass
    yield os.path.realpath(here)


def _named(given: object, depth: int, key: str = "") -> Iterator[str]:
    """The files that a tool's input names: values of such keys, and headers of patches."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(given, dict):
        for name, value in given.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _named(value, depth + 1, str(name))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(given, list):
        for value in given:  # pyright: ignore[reportUnknownVariableType]
            yield from _named(value, depth + 1, key)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(given, str):
        if "path" in key.lower() or "file" in key.lower():
            yield given
        else:
            yield from _patched(given)


def _patched(text: str) -> Iterator[str]:
    """The files that a patch of Codex names."""
    if "*** " in text:
        for line in text.split("\n"):
            head, _, path = line.strip().partition(": ")
            if path and head.startswith("*** "):
                yield path


def _guessed_places(raw: bytes) -> Iterator[str]:
    """As ``_places``, of a call that cannot be read: all that looks like a path in it."""
    import re
    from itertools import islice

    for found in islice(re.finditer(rb'/[^"\\\x00-\x1f]+', raw), _MAX_GUESSES):
        yield os.path.realpath(os.fsdecode(found[0]))
    yield os.path.realpath(_working_folder())


def _working_folder() -> str:
    """The working folder, or the root of the file system where that was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return "/"


def _age(address: str) -> float:
    try:
        return -os.lstat(address).st_mtime
    except OSError:
        return 0.0
