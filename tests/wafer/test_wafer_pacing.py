"""When tokens are due at a simulated pace."""

from __future__ import annotations

import pytest

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.pacing import Pace


def test_tokens_are_due_one_by_one_behind_the_first() -> None:
    pace = Pace("wafer", 0.01, first_seconds=0.5)
    assert [pace.due(token) for token in (0, 1, 50)] == pytest.approx([0.5, 0.51, 1.0])
    assert pace.tokens_per_second == pytest.approx(100)


def test_wrong_paces_are_refused() -> None:
    for wrong in ({"seconds_per_token": 0.0}, {"seconds_per_token": 0.1, "first_seconds": -1.0}):
        with pytest.raises(WaferUsageError):
            Pace("wafer", **wrong)
