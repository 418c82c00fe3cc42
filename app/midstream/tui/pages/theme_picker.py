"""Choosing a theme: the whole screen and a small diff preview the one under the cursor."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from midstream.edits.documents import SourceText
from midstream.pairing.files.commit import FileDiff
from midstream.tui.diff.patch import DiffWriter
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.services import AppServices
from midstream.tui.widgets.row_list import ListRow

MAX_SHOWN: Final = 20
"""Lines of the small diff, at most."""
_BEFORE: Final = '''\
def total(rows, rate=0.19):
    """What the rows cost."""
    sum = 0
    for row in rows:
        sum += row.price
    return sum * rate
'''
_AFTER: Final = '''\
def total(rows, rate=0.19):
    """What the rows cost."""
    if not rows:
        raise ValueError("rows is empty")
    amount = 0
    for row in rows:
        amount += row.price
    return amount * rate
'''


def theme_picker(
    services: AppServices, title: str, *, first: tuple[ListRow, ...] = ()
) -> PickerScreen:
    """A picker of all themes, with the cursor on the one in use.

    Args:
        services: The application.
        title: What stands on the border.
        first: Rows above the themes.
    """
    rows = [
        ListRow(
            palette.name,
            ((palette.label, "foreground"), ("" if palette.dark else "  light", "muted")),
            ((f"  {palette.about}", "muted"),),
            also="dark" if palette.dark else "",
        )
        for palette in services.palettes.values()
    ]
    writer = DiffWriter(
        "sample.py", FileDiff.between(SourceText.from_text(_BEFORE), SourceText.from_text(_AFTER))
    )

    def sample(width: int) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        writer.write(text, services.palette, services.glyphs, width, MAX_SHOWN)
        return text

    def preview(name: str) -> None:
        if name in services.palettes:
            services.use_theme(name)

    return PickerScreen(
        services,
        title,
        (*first, *rows),
        preview=preview,
        select=services.palette.name,
        sample=sample,
    )
