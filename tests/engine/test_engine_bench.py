"""The engine bench on a tiny model: every figure is there and means something."""

from __future__ import annotations

import json
import signal
import sys
import threading
import weakref
from pathlib import Path

import pytest

from midstream.bench.engine import as_lines, measure
from midstream.bench.progress import BenchProgress
from midstream.bench.terminal import TerminalProgram
from midstream.cli import main
from midstream.engine.bandwidth import weights_read
from midstream.engine.folder import read_folder
from midstream.errors import UserError
from tests.helpers.folders import write_folder
from tests.helpers.tiny import random_weights
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system


def test_everything_is_measured(tmp_path: Path) -> None:
    write_folder(
        tmp_path, prompt="chat", width=32, heads=2, kv_heads=1, layers=1, hidden=64, context=1600
    )
    report = measure(tmp_path, BenchProgress(), threads=1, repeat=1)
    assert report.same_text == "12 of 12"
    drafted, undrafted = report.edits["own way"], report.edits["own way, undrafted"]
    assert drafted.tokens == undrafted.tokens
    assert drafted.forwards <= undrafted.forwards
    assert undrafted.tokens_per_forward == 1
    # Whatever the weights: a rename is mostly copied, and a text of ordinary tokens comes in runs.
    assert report.edits["whole lines"].tokens_per_forward > 4
    assert 0 < report.row_share < 1
    assert list(report.plain_tokens_per_second) == [256, 1024]
    assert report.prefill_tokens_per_second[256] > report.plain_tokens_per_second[256]
    assert 0 < report.python_share < 1
    redirects = {"redirect", "redirect read ahead", "redirect read a line ago"}
    kinds = {"cold", "warm"} | redirects
    assert set(report.change_ms) == {
        f"{kind}, {what}"
        for kind in ("pasted", "typed")
        for what in ("first change", "whole answer")
    }
    assert set(report.first_token_ms) == kinds | {f"long region, {kind}" for kind in kinds}
    # A chat goes on: of the earlier turn nothing is read again but what follows the kept lines.
    shares = report.redirect_share
    assert shares["redirect, tokens read"] < 0.7
    assert shares["long region, redirect, tokens read"] < 0.4
    assert shares["redirect read a line ago, tokens read"] <= shares["redirect, tokens read"]
    assert shares["redirect read ahead, tokens read"] == 0
    assert shares["redirect, time"] > 0
    assert set(report.stop_forwards) == {"reading", "writing"}
    for kind in report.stop_forwards:
        assert 0 < report.stop_ms[kind] <= report.stop_ms[f"{kind}, slowest"]
    assert drafted.edit_ms > 0
    assert 0 < report.bandwidth_share[256] < 1
    assert report.loop_lag_ms["generating p50"] <= report.loop_lag_ms["generating p99"]
    text = "\n".join(as_lines(report))
    assert "same text" in text
    assert "12 of 12" in text


def test_the_first_text_of_a_chat_is_measured(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", layers=1, context=1600)
    report = measure(tmp_path, BenchProgress(), threads=1, only=["contexts"], contexts=[400])
    found = report.first_text
    assert list(found) == [
        "nothing cached, 400",
        "the turn before cached, 400",
        "read ahead but for a word, 400",
        "read ahead, 400",
    ]
    cold, cached, begun, ahead = found.values()
    assert 300 < cold.read == cold.tokens < 500
    assert cold.read > cached.read > begun.read > ahead.read == 0
    assert "first text, read ahead, 400" in "\n".join(as_lines(report))


def test_what_dropped_turns_cost_is_measured(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", prompt="chat", layers=2, context=4096)
    (tmp_path / "text.md").write_text(
        "\n\n".join(f"{n} items are {n} items. " * 9 for n in range(60))
    )
    report = measure(tmp_path / "model", BenchProgress(), threads=1, only=["turns"], texts=tmp_path)
    for case in report.turns.values():
        assert case.conversations > 1
        assert case.read["moved"] < 0.5 * case.read["fresh"]
        assert set(case.loss) == {"fresh", "whole", "moved"}
        assert abs(case.worse) < 0.5
    text = "\n".join(as_lines(report))
    assert "5 of 7" in text
    assert "moved rows: loss" in text
    with pytest.raises(UserError, match="no Markdown file"):
        measure(
            tmp_path / "model", BenchProgress(), threads=1, only=["turns"], texts=tmp_path / "model"
        )


def test_a_step_reads_matrices_and_not_tables(tmp_path: Path) -> None:
    shape = write_folder(tmp_path)
    weights = random_weights(shape)
    tables = sum(weights[name].nbytes for name in ("embedding", "cos", "sin"))
    everything = sum(value.nbytes for value in weights.values())
    read = weights_read(read_folder(tmp_path))
    # A few constants of the graph come on top.
    assert everything - tables <= read < everything - tables + 200


def test_progress_and_a_stop_on_a_terminal(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", width=256, heads=4, layers=6, hidden=512, context=1600)
    command = [sys.executable, "-m", "midstream", "bench", "engine", "--model", str(tmp_path)]
    with TerminalProgram(command, size=(120, 40)) as program:
        program.wait_for("edits, its own way: 5 of 36, ", PATIENCE_S)
        assert b"edits, given texts: 18 of 18, " in program.output, "every edit is told"
        program.write("\x03")
        assert program.exit_code(PATIENCE_S) == 130, program.output[-2000:]
        shown = program.output.decode().rpartition("\x1b[K")[2]
    assert "edits, whole lines" in shown
    assert "edits, own way  " in shown, "of the edits before the stop"
    assert "undrafted" not in shown
    assert "memory, used" not in shown
    assert "Python's share" not in shown, "what was not measured is left out"
    stopped = "Stopped at tiny: edits, its own way: what comes after that was not"
    assert stopped in shown


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_ends_the_part() -> None:
    """What a callback of a weak reference raises is dropped."""
    progress = BenchProgress()
    steps: list[int] = []
    with progress.ended_by_ctrl_c():
        progress.part("first")
        with progress.stoppable():
            for step in progress.over(range(5)):
                steps.append(step)
                if step == 2:
                    watched = threading.Event()
                    reference = weakref.ref(watched, lambda _: signal.raise_signal(signal.SIGINT))
                    del watched
                    assert reference() is None
        with pytest.raises(KeyboardInterrupt):
            progress.part("second")
    assert steps == [0, 1, 2]
    assert progress.stopped == "first"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_within_a_lock_is_no_error() -> None:
    progress = BenchProgress()
    with progress.ended_by_ctrl_c():
        progress.part("first")
        with progress.stoppable():
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                threading.Lock().release()
    assert progress.stopped == "first"
    with pytest.raises(RuntimeError, match="release unlocked lock"), progress.stoppable():
        threading.Lock().release()


def test_a_missing_model_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "engine", "--model", str(tmp_path / "nowhere"), "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "model_folder"
    assert "no model folder" in error["message"]
