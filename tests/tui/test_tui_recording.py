"""The README's animation is put together so that every moment shows its own rows."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "screenshots"))
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script extends it
    return importlib.import_module("record")


def test_rows_are_shown_while_they_are_on_screen(record: ModuleType) -> None:
    one = (ROOT / "screenshots" / "commit-small.svg").read_text("utf-8")
    two = (ROOT / "screenshots" / "help-small.svg").read_text("utf-8")
    film = record.animated([(10.0, one), (11.0, two), (13.0, one), (14.0, "")])
    classes: dict[str, str] = {}
    first, second = record.rows_of(one, classes), record.rows_of(two, classes)
    spans = dict(re.findall(r"@keyframes k(\d+)\{(.*?\})\}", film))
    groups = dict(re.findall(r'<g class="a k(\d+)">(.*?)</g>', film))
    times = {content: spans[number] for number, content in groups.items()}
    v, h = "{visibility:visible}", "{visibility:hidden}"
    for number in range(24):
        if first[number] == second[number]:
            assert first[number] in film
            assert first[number] not in times
        else:
            assert times[first[number]] == f"0.00%{v}25.00%{h}75.00%{v}100.00%{h}"
            assert times[second[number]] == f"0%{h}25.00%{v}75.00%{h}"
    assert "terminal-" not in "".join(groups.values()).replace("terminal-line", "")


def test_the_recording_is_what_the_script_makes(record: ModuleType) -> None:
    film = (ROOT / "docs" / "recording.svg").read_text("utf-8")
    words = re.sub(r"<[^>]*>", " ", film).replace("&#160;", " ")
    for words_typed in (record.INSTRUCTION, record.REDIRECT):
        assert words_typed in words
    assert "sums.append" in re.sub(r"\s+", "", words)
    assert len(film) < 1_000_000
