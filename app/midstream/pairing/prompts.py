"""How a chat model is asked for edits, by format: system texts, the patch tool, and the message.

An edit model was trained on region requests (``requests``) and gets none of this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from midstream.edits.formats import format_spec
from midstream.pairing.context import Context, Part

_COMMON: Final = """\
You are a careful programmer who edits files of a project. The user message holds the files, what is
known about the project, and an instruction. Do what the instruction says and no more; keep the
style of the file. Files are given without line numbers and your edits must not contain any. Each
change is read and decided by a person while you write, so keep them small and in the order of the
file. If the instruction cannot be carried out, say why in one sentence and make no edit.
"""


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
        edit_format: The format's name.
        tool: Whether the endpoint takes custom tools.
    """
    spec = format_spec(edit_format)
    used = spec.tool if tool else None
    how = spec.prompt if used is None else used.prompt
    message = context_text(context) + _tagged("instruction", {}, f"{instruction}\n")
    return Prompt(f"{_COMMON}\n{how}", message, () if used is None else (used.declaration,))


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
