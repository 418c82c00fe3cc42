"""The person's own theme files, looked at again and again, so that a change shows while it is made.

The folder need not exist yet.  It is read by comparing times and sizes, which costs next to nothing
for a handful of files and works on every file system.  Applying a theme is the app's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from midstream.theme_tables import ThemeError
from midstream.tui.themes import Palette, load_theme

LOOK_EVERY_S: Final = 1.0


@dataclass(slots=True)
class ThemeNews:
    """What has changed since the last look.

    Attributes:
        palettes: Themes that are new or different, by name.
        gone: Names of themes whose files were taken away.
        errors: What is wrong with files that cannot be used.
    """

    palettes: dict[str, Palette] = field(default_factory=dict[str, Palette])
    gone: set[str] = field(default_factory=set[str])
    errors: list[ThemeError] = field(default_factory=list[ThemeError])


class ThemeFiles:
    """Theme files of one folder.

    Args:
        folder: The folder; what is in it now counts as known.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._stamps()

    def look(self) -> ThemeNews:
        """Read the files that have changed (blocking, a few calls)."""
        before, self._seen = self._seen, self._stamps()
        news = ThemeNews(gone={path.stem for path in before.keys() - self._seen.keys()})
        for path, stamp in self._seen.items():
            if before.get(path) == stamp:
                continue
            try:
                news.palettes[path.stem] = load_theme(path)
            except ThemeError as error:
                news.errors.append(error)
        return news

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        stamps: dict[Path, tuple[int, int]] = {}
        for path in sorted(self._folder.glob("*.toml")):
            try:
                status = path.stat()
            except OSError:
                continue  # It went between the listing and the look.
            stamps[path] = (status.st_mtime_ns, status.st_size)
        return stamps
