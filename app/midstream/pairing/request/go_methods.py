"""Instructions that add a method to a type of Go, whose methods stand beside it in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.pairing.request.additions import adds_method, names_one, without_body
from midstream.pairing.request.new_code import FileAddition, place_in_file
from midstream.pairing.request.subject import Subject

if TYPE_CHECKING:
    from midstream.code.outline import Outline
    from midstream.pairing.request.target import Target


def find_go_method(
    instruction: str, outlined: Outline, target: Target, path: str
) -> tuple[FileAddition, Subject] | None:
    """Where a file of Go gets one more method of a type, and that type; ``None`` for all else.

    Args:
        instruction: The instruction.
        outlined: The definitions of the file.
        target: What was found for it: the type, or a method of it.
        path: The file's name.
    """
    found = adds_method(instruction) if path.endswith(".go") else None
    names = {target.symbol, target.symbol.rpartition(".")[0]} - {""}
    types = [d for d in outlined.definitions if d.kind == "class" and d.name in names]
    if found is None or len(types) != 1:
        return None
    functions = [d for d in outlined.definitions if d.kind == "function"]
    methods = [d for d in functions if d.name.rpartition(".")[0] == types[0].name]
    if names_one(instruction, found, (), methods):
        return None
    shown: list[str] = []
    for each in (types[0], *methods):
        lines = outlined.lines[each.start : each.stop]
        shown += lines if each.kind == "class" else ("", *without_body(lines, path))
    text = "".join(f"{each}\n" for each in shown)
    name = types[0].name
    return place_in_file(outlined.lines, path, (name,), owner=name), Subject(path, text, (name,))
