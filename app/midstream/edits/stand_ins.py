"""Files that are decided as a whole: one line stands in for their contents.

A picture, a very long file or a symbolic link has no lines to decide about, and a change of line
ends or permissions changes none.  A stand-in has one line that names the file's kind, size and
content (none where there is no file), so that a change is one hunk, which is decided, undone and
journalled like any other.  Writing a stand-in writes the file that its line stands for; lines that
stand for nothing are never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from midstream.edits.documents import LINE_ENDS, NotTextError, SourceText, UnencodableError

MAX_KEPT_BYTES: Final = 16 << 20
"""The bytes of a larger file are not kept."""
MAX_TOTAL_BYTES: Final = 4 * MAX_KEPT_BYTES
"""How many bytes are kept of the states of one file; the oldest go first."""


class FileProperties(NamedTuple):
    """The properties of a file, apart from its name.

    Attributes:
        data: Its bytes, or where a symbolic link points; ``None`` if they were not kept.
        executable: Whether it may be run; ``None`` for as it is.
        link: Whether it is a symbolic link.
        digest: Digest of its bytes, ``""`` where it is not known.
    """

    data: bytes | None
    executable: bool | None = None
    link: bool = False
    digest: str = ""


@dataclass(frozen=True, slots=True)
class StandIn(SourceText):
    """A file as a whole.

    Attributes:
        states: What lines stand for, oldest first.
    """

    states: Mapping[tuple[str, ...], FileProperties] = field(
        default_factory=dict[tuple[str, ...], FileProperties], compare=False, repr=False
    )

    @classmethod
    def of(
        cls,
        properties: FileProperties,
        former: Iterable[SourceText] = (),
        program: bool | None = None,
    ) -> StandIn:
        """The stand-in of a file.

        Args:
            properties: What it is, with its bytes and their digest.
            former: What the file was so far, and may be asked for again.
            program: Whether it could be run while it was a text.
        """
        return cls.named(_named(properties), properties, former, program)

    @classmethod
    def named(
        cls,
        line: str,
        properties: FileProperties,
        former: Iterable[SourceText] = (),
        program: bool | None = None,
    ) -> StandIn:
        """The stand-in with a line that was made before."""
        states: dict[tuple[str, ...], FileProperties] = {}
        for text in former:
            if isinstance(text, StandIn):
                states |= text.states
            elif text.lines:
                states[text.lines] = FileProperties(text.to_bytes(), program)
        states.pop((line,), None)
        too_large = properties.data is not None and len(properties.data) > MAX_KEPT_BYTES
        states[(line,)] = properties._replace(data=None) if too_large else properties
        size = sum(len(known.data) for known in states.values() if known.data is not None)
        for lines, known in list(states.items()):
            if size > MAX_TOTAL_BYTES and known.data is not None:
                states[lines] = known._replace(data=None)
                size -= len(known.data)
        return cls((line,), ("\n",), states=states)

    @property
    def properties(self) -> FileProperties:
        """The file that the lines stand in for.

        Raises:
            UnencodableError: They stand for nothing.
        """
        if (properties := self.states.get(self.lines)) is None:
            raise UnencodableError("it is no text in lines, so it is kept or put back as a whole")
        return properties

    def to_bytes(self) -> bytes:
        """The bytes that the lines stand for; of a link, where it points.

        Raises:
            UnencodableError: They were not kept, or the lines stand for nothing.
        """
        if (data := self.properties.data) is None:
            raise UnencodableError(
                f"what it held is not kept (more than {MAX_KEPT_BYTES >> 20} MiB, or too long ago)"
            )
        return data


def is_whole(text: SourceText) -> bool:
    """Whether a file is decided as a whole."""
    return isinstance(text, StandIn)


def properties_of(text: SourceText) -> FileProperties | None:
    """The properties of a file with this text; ``None`` if nothing is known, or there is no
    file.
    """
    if text.missing:
        return None
    if isinstance(text, StandIn):
        return text.states.get(text.lines)
    return FileProperties(text.to_bytes())


def same_file(text: SourceText, other: SourceText) -> bool:
    """Whether two texts, of lines or stand-ins, have the same bytes, as far as they are kept."""
    if text.missing or other.missing:
        return text.missing and other.missing
    properties, other_properties = properties_of(text), properties_of(other)
    if properties is None or other_properties is None or properties.data is None:
        return False
    return (properties.data, properties.link) == (other_properties.data, other_properties.link)


_MAX_NAMES: Final = 64
"""Lines that are kept."""
_names: dict[tuple[str, bool | None, bool], str] = {}
"""The lines that were made last: that of a large file takes long, and is asked for again."""


def _named(properties: FileProperties) -> str:
    if not properties.digest:
        return _described(properties)
    key = (properties.digest, properties.executable, properties.link)
    if (line := _names.get(key)) is None:
        line = _described(properties)
        if len(_names) >= _MAX_NAMES:
            _names.clear()
        _names[key] = line
    return line


def _described(properties: FileProperties) -> str:
    data = properties.data or b""
    if properties.link:
        target = data.decode("utf-8", "backslashreplace")
        return "link to " + target.replace("\r", "\\r").replace("\n", "\\n")
    if not data:
        return "empty file, executable" if properties.executable else "empty file"
    words = [f"{len(data):,} bytes"]
    try:
        text = SourceText.from_bytes(data)
    except NotTextError:
        kind = "binary"
    else:
        kind = "text"
        words += _form(text)
    if properties.executable:
        words.append("executable")
    return f"{kind} file, {', '.join(words)}, content {properties.digest[:12]}"


def _form(text: SourceText) -> list[str]:
    """How a text is written, as far as its lines do not say it."""
    ends = {LINE_ENDS[end] for end in text.ends if end}
    words = [f"{' and '.join(sorted(ends))} line ends" if ends else "no line end"]
    if ends and not text.final_newline:
        words.append("no final newline")
    if text.encoding != "utf-8":
        words.append(text.encoding)
    if text.bom:
        words.append("byte order mark")
    return words
