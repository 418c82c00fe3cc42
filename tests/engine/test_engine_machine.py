"""Machine facts of the benches, and comparing one output with an earlier one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from midstream.bench.machine import compared, machine_facts, read_output
from midstream.errors import UserError


def output(processor: str, speed: float, times: float) -> dict[str, Any]:
    """What a bench prints, in small."""
    return {
        "machine": {"processor": processor, "cores": "2", "features": "avx2"},
        "plain": {"256": speed},
        "peers": {"other": {"plain": {"theirs": speed / times, "ours": speed, "times": times}}},
        "figures": [{"name": "key", "value": speed / 10, "met": True}],
    }


def test_facts_name_the_machine_and_the_versions() -> None:
    facts = machine_facts()
    assert int(facts["cores"]) >= 1
    assert {"processor", "system", "python", "onnxruntime", "textual"} <= set(facts)


def test_every_common_figure_on_the_same_machine() -> None:
    lines = list(compared(output("A", 100, 1.25), output("A", 150, 1.5)))
    assert lines == [
        "    1.50x           100 ->          150  plain, 256",
        "    1.25x            80 ->          100  peers, other, plain, theirs",
        "    1.50x           100 ->          150  peers, other, plain, ours",
        "    1.20x          1.25 ->          1.5  peers, other, plain, times",
        "    1.50x            10 ->           15  figures, key",
    ]


def test_only_ratios_from_another_machine() -> None:
    lines = list(compared(output("A", 100, 1.25), output("B", 900, 1.5)))
    assert lines == [
        "another machine: only what is relative is compared",
        "    1.20x          1.25 ->          1.5  peers, other, plain, times",
    ]


def test_nothing_in_common_is_said() -> None:
    assert list(compared({"a": 1}, {"b": 2})) == ["  nothing in common"]


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_what_is_no_output_is_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "earlier.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"earlier\.json"):
        read_output(file)
    file.write_text(json.dumps({"plain": 1}))
    assert read_output(file) == {"plain": 1}
