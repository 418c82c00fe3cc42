"""Stock Textual as a yardstick: both widgets show what they are fed and take keys meanwhile."""

from __future__ import annotations

import sys

import pytest

from midstream.bench.screen_runs import STOCK_STARTED, STOCK_WIDGETS
from midstream.bench.terminal import TerminalProgram

pytestmark = pytest.mark.system


@pytest.mark.parametrize("widget", STOCK_WIDGETS)
def test_a_stock_widget_is_fed_while_keys_are_typed(widget: str) -> None:
    command = [sys.executable, "-m", "midstream.bench.stock", widget, "500", "400"]
    with TerminalProgram(command) as program:
        program.wait_for(STOCK_STARTED, 60)
        program.wait_for("value_20", 60)
        program.write("abc")
        program.wait_for("abc", 60)
        program.wait_for("value_60", 60)
