"""Times of day and spans of time, in words."""

from __future__ import annotations

import time


def when(seconds: float) -> str:
    """A time (Unix seconds), shorter the more recent it is."""
    then, now = time.localtime(seconds), time.localtime()
    if then[:3] == now[:3]:
        return time.strftime("today %H:%M", then)
    if then.tm_year == now.tm_year:
        return time.strftime("%a %d %b %H:%M", then)
    return time.strftime("%d %b %Y %H:%M", then)


def span(seconds: float) -> str:
    """How long something took, to the minute."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
