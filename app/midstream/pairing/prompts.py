"""How a chat model is asked for edits, by format: system texts, the patch tool, and the message.

An edit model was trained on region requests (``requests``) and gets none of this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from midstream.pairing.context import Context, Part

_COMMON: Final = """\
You are a careful programmer who edits files of a project. The user message holds the files, what is
known about the project, and an instruction. Do what the instruction says and no more; keep the
style of the file. Files are given without line numbers and your edits must not contain any. Each
change is read and decided by a person while you write, so keep them small and in the order of the
file. If the instruction cannot be carried out, say why in one sentence and make no edit.
"""

_V4A: Final = """\
Write your edits as one patch in this format, {where}:

*** Begin Patch
*** Update File: path/of/file.py
@@ def function_that_contains_the_change
 a line of context, exactly as in the file
-a line to take away
+a line to put in its place
 a line of context
*** End Patch

A new file is "*** Add File: path" with every line after a "+", a file to remove is "*** Delete
File: path", and "*** Move to: path" after "*** Update File: path" renames it. Give three lines of
context before and after each change, copied character by character, indentation included. Where
they occur several times, name the function or class in "@@" lines, outermost first. Paths are
relative. Never use line numbers.
"""

_SEARCH_REPLACE: Final = """\
Write each edit as a block, with the path of its file in the line above:

path/of/file.py
<<<<<<< SEARCH
lines of the file as they are
=======
the lines that replace them
>>>>>>> REPLACE

The lines under SEARCH must be whole lines copied character by character from the file, indentation
included, and enough of them to occur once: the changed lines and one or two around them, never a
whole function. Write one block for each place. An empty SEARCH part makes a new file. Say nothing
between the blocks but what is needed to understand them.
"""

_STR_REPLACE: Final = """\
Write your edits as one JSON object and nothing else:

{"edits": [{"path": "file.py", "old_str": "text as it is", "new_str": "text as it shall be"}]}

Each old_str must be copied character by character from the file and occur there exactly once. A new
file is {"path": "file.py", "file_text": "..."}.
"""

_UDIFF: Final = """\
Write your edits as one unified diff, as `diff -U3` would: "--- a/path", "+++ b/path", and hunks
that start with "@@ ... @@". Line numbers are not needed. Lines of context and removed lines must be
copied character by character from the file. Make hunks of whole blocks rather than of single lines.
"""

_WHOLE: Final = """\
Write every file that changes completely: its path in a line of its own, then its whole new text in
a code fence. Leave nothing out; a comment such as "rest of the code" would delete the rest.
"""

SYSTEM_TEXTS: Final[Mapping[str, str]] = {
    "v4a": _COMMON + "\n" + _V4A.format(where="between these two marker lines and nowhere else"),
    "v4a-tool": _COMMON + "\n" + _V4A.format(where="as the input of the tool apply_patch"),
    "search-replace": _COMMON + "\n" + _SEARCH_REPLACE,
    "str-replace": _COMMON + "\n" + _STR_REPLACE,
    "udiff": _COMMON + "\n" + _UDIFF,
    "whole": _COMMON + "\n" + _WHOLE,
}
"""System texts by edit format; ``v4a-tool`` where the endpoint takes a custom tool."""

V4A_GRAMMAR: Final = r"""
start: begin_patch section+ end_patch
begin_patch: "*** Begin Patch" NEWLINE
end_patch: "*** End Patch" NEWLINE?

section: added | deleted | updated
added: "*** Add File: " PATH NEWLINE new_line+
deleted: "*** Delete File: " PATH NEWLINE
updated: "*** Update File: " PATH NEWLINE moved? change?
moved: "*** Move to: " PATH NEWLINE
change: (place | changed_line)+ file_end?
place: ("@@" | "@@ " TEXT) NEWLINE
new_line: "+" TEXT? NEWLINE
changed_line: ("+" | "-" | " ") TEXT? NEWLINE
file_end: "*** End of File" NEWLINE

PATH: /[^\r\n]+/
TEXT: /[^\r\n]+/
NEWLINE: /\r?\n/
""".lstrip()
"""The patch language as published, in Lark's notation, worded anew."""

PATCH_TOOL: Final[Mapping[str, Any]] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files. The input is one patch from *** Begin Patch to *** End Patch.",
    "format": {"type": "grammar", "syntax": "lark", "definition": V4A_GRAMMAR},
}
"""The tool through which a model of OpenAI's streams a patch as it writes it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent for one instruction.

    Attributes:
        system: System text.
        message: The user's message.
        tools: Tools that the model may call.
    """

    system: str
    message: str
    tools: tuple[Mapping[str, Any], ...] = ()


def block_prompt(
    instruction: str, context: Context, edit_format: str, *, tool: bool = False
) -> Prompt:
    """The request for edits in a format in which the model names the places.

    Args:
        instruction: What the person asks for.
        context: What goes along.
        edit_format: A key of ``SYSTEM_TEXTS``.
        tool: Whether the endpoint takes V4A as a custom tool.
    """
    with_tool = tool and edit_format == "v4a"
    system = SYSTEM_TEXTS["v4a-tool" if with_tool else edit_format]
    message = context_text(context) + _tagged("instruction", {}, f"{instruction}\n")
    return Prompt(system, message, (PATCH_TOOL,) if with_tool else ())


def context_text(context: Context) -> str:
    """Parts of a context as tagged blocks, ``""`` if there are none."""
    return "".join(_part(part) for part in context.parts)


_TAGS: Final = {
    "file": "file",
    "selection": "selection",
    "instructions": "project-instructions",
    "diff": "uncommitted-changes",
    "decisions": "decisions-so-far",
}


def _part(part: Part) -> str:
    attributes = {"path": part.name} if part.kind in ("file", "instructions", "selection") else {}
    if part.cut:
        attributes["part"] = part.cut
    return _tagged(_TAGS[part.kind], attributes, part.text)


def _tagged(tag: str, attributes: Mapping[str, str], text: str) -> str:
    """A block of which the end cannot be mistaken: the tag is numbered where the text has it."""
    name, number = tag, 1
    while re.search(rf"</?{name}[\s>]", text):
        number += 1
        name = f"{tag}-{number}"
    shown = "".join(
        f' {key}="{value.replace("&", "&amp;").replace(chr(34), "&quot;")}"'
        for key, value in attributes.items()
    )
    end = "" if text.endswith("\n") or not text else "\n"
    return f"<{name}{shown}>\n{text}{end}</{name}>\n"
