"""The text of a file without any accepted change, kept beside its proposal.

An accept changes the *reviewed* text (the file without undecided changes) and leaves the origin
alone; a change without a decision, such as a save by the user, changes both.  So the difference of
the two is what was accepted, over any number of hunks that replaced each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from midstream.edits.documents import LineEdit, NotTextError, SourceText
from midstream.edits.lcs import line_edits
from midstream.edits.stand_ins import is_whole, properties_of, same_file


class Origin:
    """Follows one file; see the module.

    Attributes:
        text: The file without what was accepted.
    """

    def __init__(self, text: SourceText) -> None:
        self.text = text
        self._kept: tuple[SourceText, SourceText] | None = None
        """Without and with what was accepted while the file was decided as a whole, if since then
        it is decided by lines."""

    def follow(self, before: SourceText, after: SourceText) -> None:
        """Take over what changed in the reviewed text without a decision."""
        if before == after:
            return
        if is_whole(before) != is_whole(after) and same_file(before, after):
            self._change_form(before, after)
        elif is_whole(before) or is_whole(after) or is_whole(self.text):
            self.text, self._kept = after, None
        else:
            lines = merged(before.lines, self.text.lines, after.lines)
            same = not after.lines or (before.lines and _form(before) == _form(after))
            form = self.text if same else after
            changed = before.missing != after.missing
            text = form.replace(line_edits(form.lines, lines))
            missing = after.missing if changed else self.text.missing
            self.text = text if lines else text.gone(missing)

    def _change_form(self, before: SourceText, after: SourceText) -> None:
        """The same file is decided as a whole from now on, or by lines."""
        if is_whole(after):
            if same_file(self.text, before):
                kept = self._kept is not None and same_file(self._kept[1], after)
                self.text = self._kept[0] if self._kept and kept else after
        elif is_whole(self.text):
            if self.text.lines != before.lines:
                self._kept = (self.text, before)
            properties = properties_of(self.text)
            if properties is not None and properties.data is not None and not properties.link:
                try:
                    self.text = SourceText.from_bytes(properties.data)
                except NotTextError:
                    return

    def accepted(
        self, reviewed: SourceText, form: SourceText | None = None
    ) -> tuple[SourceText, SourceText]:
        """The file without and with what was accepted; the same if that is nothing.

        Args:
            reviewed: The reviewed text.
            form: The reviewed text at the last time when nothing waited, if something does now.
                Until it is decided only lines count, and no line ends or encoding that changed
                along with them.
        """
        if self._kept and self.text.lines == reviewed.lines and same_file(self._kept[1], reviewed):
            return self._kept
        if form and not (self._kept or is_whole(self.text) or is_whole(reviewed)):
            form = self.text if is_whole(form) else form
            lines = form.replace(line_edits(form.lines, reviewed.lines))
            reviewed = lines if lines.lines else lines.gone(reviewed.missing)
        return self.text, reviewed

    def programs(self, reviewed: SourceText) -> tuple[bool | None, bool | None]:
        """Whether the file could be run without and with what was accepted, if that is known."""
        by_lines = not (is_whole(self.text) or is_whole(reviewed))
        texts = self._kept if self._kept and by_lines else (self.text, reviewed)
        before, after = map(properties_of, texts)
        return before and before.executable, after and after.executable


def merged(lines: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    """Lines with two changes; where these meet, only theirs.

    Args:
        lines: The common ancestor.
        ours: One change of it.
        theirs: The other one.
    """
    wanted = line_edits(lines, theirs)
    apart = [edit for edit in line_edits(lines, ours) if not any(_meet(edit, e) for e in wanted)]
    result: list[str] = []
    at = 0
    for edit in sorted((*apart, *wanted), key=lambda edit: (edit.start, edit.stop)):
        result += lines[at : edit.start]
        result += edit.lines
        at = edit.stop
    return (*result, *lines[at:])


def _meet(edit: LineEdit, other: LineEdit) -> bool:
    """Whether two edits change the same lines, or add lines at the same place."""
    if edit.start == edit.stop and other.start == other.stop:
        return edit.start == other.start
    return edit.start < other.stop and other.start < edit.stop


def _form(text: SourceText) -> tuple[str, str, bool]:
    """What a text is apart from its lines."""
    return text.newline, text.encoding, text.bom
