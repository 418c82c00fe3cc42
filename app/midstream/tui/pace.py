"""How often the frames of a stream are painted, so that the event loop stays free for keys.

Cheap frames come sixty times a second.  Where frames are expensive (a fast stream, a wide window, a
slow machine) they come less often and each shows more, so that their share of a core stays the
same.  Typed text is painted at once and does not wait for a frame.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.055
"""Part of a core that frames may take."""
LONGEST_S: Final = 0.1
"""Seconds between two frames at most, however expensive they are."""
_WEIGHT: Final = 0.2
"""Of the newest frame in the mean."""


class FramePace:
    """Says when the next frame of a stream is due."""

    def __init__(self) -> None:
        self._cost = 0.0
        self._last = 0.0

    @property
    def gap(self) -> float:
        """Seconds between two frames."""
        return min(LONGEST_S, self._cost / SHARE)

    def due(self, now: float, grid: float) -> bool:
        """Whether a frame is due.

        Args:
            now: The time.
            grid: Seconds between two times at which this is asked; the nearer one is taken.
        """
        if now - self._last < self.gap - grid / 2:
            return False
        self._last = now
        return True

    def took(self, seconds: float) -> None:
        """A frame was made and painted; the processor time that it took."""
        self._cost += _WEIGHT * (seconds - self._cost)
