"""The edit formats, one module each.

A module here declares one format of its name (``search_replace`` is "search-replace"): on import
it registers a ``FormatSpec``.  Sniffing, applying, streaming, prompts, settings and the command
line read the registry, so a new format is a new module and nothing else.  Every start of the
program imports this module, so it stays cheap: named tuples instead of dataclasses, no parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from midstream.edits.parsing import ReplyParser

Test = Callable[[str], object]
"""Whether a line matches, as the truth of the result (a method of a compiled pattern will do)."""


class Sniff(NamedTuple):
    """How a format is recognised.

    Attributes:
        marker: Says of a line whether it gives the format away.
        opening: For formats whose markers also occur in others: they count only from a line that
            this accepts.  Such a line alone decides if nothing else does by the end of the reply.
    """

    marker: Test
    opening: Test | None = None


class EditTool(NamedTuple):
    """A tool through which a model writes the format, for endpoints that take custom tools.

    Attributes:
        declaration: The tool as the Responses API declares it.
        prompt: What the model is told in place of the format's own prompt.
    """

    declaration: Mapping[str, Any]
    prompt: str


class ApplyPolicy(NamedTuple):
    """How complete edits of a format are applied.

    Attributes:
        creates_files: An update without old lines may create its file.
        one_newline: New lines end as most lines of the file do, not as their neighbours.
        terminates_last_line: The last line that was written is terminated.
        sequential: Each edit is written for the text that the edits before it left.
        whole_sides: Old and new text are given whole, so their common lines are context.
    """

    creates_files: bool = True
    one_newline: bool = False
    terminates_last_line: bool = False
    sequential: bool = False
    whole_sides: bool = False


class FormatSpec(NamedTuple):
    """Everything about an edit format.

    Attributes:
        name: As commands and settings spell it.
        parser: Makes a streaming parser.
        bare_parser: The same for a reply that is known to be in the format, if that makes a
            difference: then text without any mark counts, too.
        sniff: How the format is recognised; None if it has no marks of its own.
        prompt: What tells a chat model to write the format; ``""`` if it is asked for otherwise.
        tool: The tool that takes the format.
        policy: How its edits are applied.
    """

    name: str
    parser: Callable[[], ReplyParser]
    bare_parser: Callable[[], ReplyParser] | None = None
    sniff: Sniff | None = None
    prompt: str = ""
    tool: EditTool | None = None
    policy: ApplyPolicy = ApplyPolicy()


_registry: dict[str, FormatSpec] = {}


def register(spec: FormatSpec) -> None:
    """Add a format, or replace the one of the same name."""
    _registry[spec.name] = spec


def names() -> tuple[str, ...]:
    """The names of all formats; imports none of them."""
    return tuple(dict.fromkeys((*_modules(), *_registry)))


def format_spec(name: str) -> FormatSpec:
    """The format of a name.

    Raises:
        ValueError: There is none.
    """
    if name not in _registry and name in _modules():
        import_module(f"{__name__}.{_modules()[name]}")
    if name not in _registry:
        raise ValueError(f'there is no edit format "{name}"; known are {", ".join(names())}')
    return _registry[name]


def format_specs() -> list[FormatSpec]:
    """All formats; imports those that are not imported yet."""
    return [format_spec(name) for name in names()]


@lru_cache(maxsize=1)
def _modules() -> dict[str, str]:
    found = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    return {name.replace("_", "-"): name for name in found}
