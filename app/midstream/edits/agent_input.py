"""Edit tools of coding agents: the effect of a call on files, and the same call for part of the
edit.

Claude Code's ``Edit``, ``MultiEdit`` and ``Write`` name one file; Codex's ``apply_patch`` names
several.  The lines of a file are what counts here: encodings and line ends are the agent's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from midstream.edits.apply import apply_reply
from midstream.edits.documents import NotTextError, SourceText, join_lines
from midstream.edits.lcs import line_edits

EDIT_TOOLS: Final = ("Edit", "MultiEdit", "Write", "apply_patch")
"""Tools whose calls are understood."""

OTHER_TOOLS: Final = frozenset({
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "EnterPlanMode", "ExitPlanMode",
    "Glob", "Grep", "KillBash", "KillShell", "LS", "ListMcpResourcesTool", "NotebookRead",
    "Read", "ReadMcpResourceTool", "Skill", "SlashCommand", "Task", "TaskCreate", "TaskGet",
    "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoRead", "TodoWrite",
    "ToolSearch", "WebFetch", "WebSearch", "exec_command", "local_shell", "read_file",
    "shell", "update_plan", "view_image", "web_search", "write_stdin",
})  # fmt: skip
"""Tools that edit no file by its name; a shell's writes are reviewed once they are on disk."""

_CONTEXT: Final = 3
"""Unchanged lines around a change, as ``diff`` writes them."""

ReadBytes = Callable[[str], bytes | None]
"""Gives a file's bytes by the path that the call names, ``None`` if there is no such file."""


class UnplacedError(ValueError):
    """The call does not fit the files; the message says why, for the agent."""


class PlannedFile(NamedTuple):
    """The effect of a call on one file.

    Attributes:
        path: As the call names it.
        before: The lines, ``None`` if there is no such file.
        after: The lines afterwards, ``None`` if it is deleted.
    """

    path: str
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None


def planned(tool: str, arguments: Mapping[str, Any], read: ReadBytes) -> tuple[PlannedFile, ...]:
    """The effect of a call on each file that it changes.

    Args:
        tool: One of ``EDIT_TOOLS``.
        arguments: The call's input.
        read: Gives the files.

    Raises:
        UnplacedError: It is malformed or does not fit the files.
    """
    if tool == "apply_patch":
        return _planned_patch(_text(arguments, "command"), read)
    path = _text(arguments, "file_path")
    before = _lines(path, read(path))
    if tool == "Write":
        after = _split(_text(arguments, "content"))
    else:
        edits = _edits(arguments) if tool == "MultiEdit" else [arguments]
        after = _replaced(path, before, edits)
    return () if after == before else (PlannedFile(path, before, after),)


def rewritten(
    tool: str, arguments: Mapping[str, Any], files: Sequence[PlannedFile]
) -> dict[str, Any]:
    """The whole input of a call of the same tool that does exactly this.

    Args:
        tool: One of ``EDIT_TOOLS``.
        arguments: The input of the original call; what is not about the text is taken from it.
        files: What the call is to do; at least one file changes.  Tools other than ``apply_patch``
            change exactly one file and do not delete it.

    Raises:
        UnplacedError: The tool cannot express it.
    """
    if tool == "apply_patch":
        return {**arguments, "command": _patch(files)}
    (file,) = files
    after = file.after or ()
    if tool == "Write":
        text = join_lines(after)
        if not _text(arguments, "content").endswith("\n"):
            text = text.removesuffix("\n")
        return {**arguments, "content": text}
    old, new = ("", join_lines(after)) if file.before is None else _span(file.before, after)
    if tool == "MultiEdit":
        return {**arguments, "edits": [{"old_string": old, "new_string": new}]}
    return {**arguments, "old_string": old, "new_string": new, "replace_all": False}


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise UnplacedError(f"The call has no text {name!r}.")
    return value


def _edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    value: object = arguments.get("edits")
    edits = cast("list[object]", value) if isinstance(value, list) else []
    if not edits or not all(isinstance(edit, dict) for edit in edits):
        raise UnplacedError("The call has no list of edits.")
    return cast("list[Mapping[str, Any]]", edits)


def _split(text: str) -> tuple[str, ...]:
    return SourceText.from_text(text).lines


def _lines(path: str, data: bytes | None) -> tuple[str, ...] | None:
    if data is None:
        return None
    try:
        return SourceText.from_bytes(data).lines
    except NotTextError as error:
        raise UnplacedError(f"{path} is not a text file ({error}).") from None


def _replaced(
    path: str, before: tuple[str, ...] | None, edits: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    # A text that ends inside the last line is found whether or not that line is terminated.
    text = join_lines(before or ())
    for edit in edits:
        old, new = (
            _text(edit, name).replace("\r\n", "\n") for name in ("old_string", "new_string")
        )
        if not old:
            if text:
                raise UnplacedError(f"{path} exists and is not empty; name the text to replace.")
            text = new
            continue
        count = text.count(old)
        if not count:
            raise UnplacedError(f"{path} does not have the text to replace; read it again.")
        if count > 1 and not edit.get("replace_all"):
            raise UnplacedError(f"{path} has the text to replace {count} times; quote more of it.")
        text = text.replace(old, new)
    return _split(text)


def _span(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, str]:
    """An old text that occurs once in a file, and what takes its place.

    Both end within a line, so that they fit a file whose last line is not terminated.
    """
    edits = line_edits(before, after)
    start, stop = edits[0].start, edits[-1].stop
    whole = join_lines(before).removesuffix("\n")
    tail = len(before) - stop
    while True:
        # A line on both sides at least, since an edit that leaves no line takes a line end along.
        start, tail = max(0, start - 1), max(0, tail - 1)
        old = "\n".join(before[start : len(before) - tail])
        new = "\n".join(after[start : len(after) - tail])
        # Without a new text, or an old one, the tool decides by itself about line ends.
        fits = (old and new and _occurs_once(whole, old)) or not before
        if fits:
            return old, new
        if start == 0 and tail == 0:
            raise UnplacedError("What was kept leaves no text; write the file again.")


def _occurs_once(text: str, part: str) -> bool:
    first = text.find(part)
    return text.find(part, first + 1) < 0


def _planned_patch(patch: str, read: ReadBytes) -> tuple[PlannedFile, ...]:
    result = apply_reply(patch, read, "v4a")
    if not result.ok:
        raise UnplacedError(result.message())
    files: list[PlannedFile] = []
    for path, data in result.changes.items():
        before, after = _lines(path, read(path)), _lines(path, data)
        if before != after:
            files.append(PlannedFile(path, before, after))
    return tuple(files)


def _patch(files: Sequence[PlannedFile]) -> str:
    lines = ["*** Begin Patch"]
    for path, before, after in files:
        if after is None:
            lines.append(f"*** Delete File: {path}")
        elif before is None:
            lines.append(f"*** Add File: {path}")
            lines += [f"+{line}" for line in after]
        else:
            lines.append(f"*** Update File: {path}")
            lines += _chunks(before, after)
    return "\n".join([*lines, "*** End Patch"])


def _chunks(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    """The hunks of a patch, each with as much context as finds its place.

    An applier looks for the old lines of a hunk from the end of the hunk before on, and takes the
    first place where they are.
    """
    edits = line_edits(before, after)
    lines: list[str] = []
    floor = at = 0
    while at < len(edits):
        group = [edits[at]]
        while at + 1 < len(edits) and edits[at + 1].start - group[-1].stop <= 2 * _CONTEXT:
            at += 1
            group.append(edits[at])
        at += 1
        room = edits[at].start if at < len(edits) else len(before)
        start = max(floor, group[0].start - _CONTEXT)
        stop = min(room, group[-1].stop + _CONTEXT)
        while _first_place(before, start, stop, floor) != start:
            # The lines above decide: with all of them the first place is the right one.
            start -= 1
        body: list[str] = []
        line = start
        for edit in group:
            body += [f" {text}" for text in before[line : edit.start]]
            body += [f"-{text}" for text in before[edit.start : edit.stop]]
            body += [f"+{text}" for text in edit.lines]
            line = edit.stop
        body += [f" {text}" for text in before[line:stop]]
        lines += ["@@", *body]
        floor = stop
    return lines


def _first_place(before: tuple[str, ...], start: int, stop: int, floor: int) -> int:
    """Where the lines ``[start, stop)`` are found first, blanks at line ends left out."""
    wanted = [line.strip() for line in before[start:stop]]
    stripped = [line.strip() for line in before[floor:stop]]
    size = len(wanted)
    for offset in range(start - floor + 1):
        if stripped[offset : offset + size] == wanted:
            return floor + offset
    return start
