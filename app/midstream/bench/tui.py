"""``midstream bench tui``: how fast the screen answers, on a real pseudo-terminal.

Figures of machines that do other work at the same time are noisy: what part of the processors was
busy is printed beside them.  What is measured, and how, is ``screen_runs``'s.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from midstream.arguments import CommandParser
from midstream.bench import afternoon, screen_runs
from midstream.bench.background import large_work
from midstream.bench.figures import Figure, print_figures
from midstream.bench.floods import floods
from midstream.bench.machine import compared, machine_facts, read_output

_RUNS: Final[Mapping[str, Callable[[Path, bool], list[Figure]]]] = {
    "start": lambda at, quick: screen_runs.start(at, 2 if quick else 6),
    "keys": lambda at, quick: screen_runs.keys(at, 5_000, (2, 8, 22), 40 if quick else 150),
    "fast": lambda at, quick: screen_runs.keys(at, 20_000, (4, 16, 45), 40 if quick else 150),
    "stock": lambda at, quick: screen_runs.stock(at, 5_000, 40 if quick else 150),
    "tmux": lambda at, quick: screen_runs.through_tmux(at, 40 if quick else 150),
    "stop": lambda at, quick: screen_runs.stops(at, 3 if quick else 12),
    "frames": lambda at, _: screen_runs.frames(at, 5_000),
    "loop": lambda at, _: screen_runs.loop(at, 5_000),
    "fast-loop": lambda at, _: screen_runs.loop(at, 20_000),
    "slow-link": lambda at, _: screen_runs.slow_link(at, 200),
    "afternoon": lambda at, quick: [
        *afternoon.afternoon(at, 80, 40 if quick else 150),
        *afternoon.afternoon(at, 1_000, 40 if quick else 150),
    ],
    "memory": lambda at, quick: afternoon.memory(at, 20 if quick else afternoon.TURNS),
    "floods": lambda at, quick: [
        *floods(at, 3 if quick else 20),
        *large_work(at, 3 if quick else 20),
    ],
    "saves": lambda at, quick: screen_runs.saves(at, 5 if quick else 20),
    "large-file": lambda at, _: screen_runs.large_file(at),
}
"""What can be measured; takes the folder of compiled bytecode, and whether to be quick."""
_NOT_QUICK: Final = (
    "afternoon",
    "memory",
    "fast",
    "tmux",
    "fast-loop",
    "slow-link",
    "floods",
)


def run(argv: Sequence[str]) -> int:
    """Measure and print; 1 when a goal is missed."""
    parser = CommandParser(prog="midstream bench tui", description="Measure the screen.")
    parser.add_argument("--quick", action="store_true", help="fewer keys, starts and situations")
    parser.add_argument(
        "--only", nargs="+", choices=_RUNS, metavar="WHAT", help=f"some of: {', '.join(_RUNS)}"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--model", type=Path, metavar="FOLDER", help="a chat model to type beside, and nothing else"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="an earlier output (--json) to compare with"
    )
    options = parser.parse_args(argv)
    earlier = None if options.compare is None else read_output(options.compare)
    wanted = options.only or [n for n in _RUNS if not (options.quick and n in _NOT_QUICK)]
    before = _processors()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as bytecode:
        if options.model is not None:
            count = 40 if options.quick else 300
            figures = afternoon.beside_model(Path(bytecode), options.model, count)
        else:
            for name in wanted:
                figures += _RUNS[name](Path(bytecode), options.quick)
    busy = _busy(before, _processors())
    facts = machine_facts()
    if not options.json:
        print("; ".join(f"{name} {text}" for name, text in facts.items()))
    code = print_figures(figures, as_json=options.json, busy=busy, machine=facts)
    if not options.json and busy is not None:
        print(f"The processors of this machine were busy for {busy:.0%} of the time.")
    if earlier is not None:
        now = {"machine": facts, "figures": [asdict(figure) for figure in figures]}
        lines = "\n".join([f"compared with {options.compare}:", *compared(earlier, now)])
        print(lines, file=sys.stderr if options.json else sys.stdout)
    return code


def _processors() -> tuple[int, int] | None:
    """Ticks of all processors together, and how many were idle; None where there is no /proc."""
    try:
        total, _, _ = Path("/proc/stat").read_text(encoding="ascii").partition("\n")
    except OSError:
        return None
    ticks = [int(field) for field in total.split()[1:]]
    return sum(ticks[:8]), ticks[3] + ticks[4]


def _busy(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[0] == before[0]:
        return None
    return 1 - (after[1] - before[1]) / (after[0] - before[0])
