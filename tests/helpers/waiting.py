"""Waiting for what a test needs, as long as it takes on a loaded machine."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""The longest wait; only a test that fails waits for all of it."""


def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait in a test without an event loop until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what or condition}"
        time.sleep(0.01)
