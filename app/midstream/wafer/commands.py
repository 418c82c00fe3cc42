"""The commands ``profile``, ``compare``, ``map`` and ``validate``, with or without Midstream.

Exit codes: 0 done, 1 negative result (does not fit, a gate failed), 2 bad usage, 3 a model or file
is unavailable.  ``--json`` prints one object, errors included.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from midstream.wafer.errors import DoesNotFitError, WaferError, WaferUsageError

if TYPE_CHECKING:
    from midstream.wafer.report import Report
    from midstream.wafer.validation import Validation

_KERNELS_HELP = "waferllm-wse2, cerebras-2024-08, cerebras-2025 (default) or spec-limit"
_OPTIONS = (
    *("hardware", "kernels", "wafers", "mode", "context", "prompt", "batch"),
    *("weight_bits", "kv_bits", "clock_ghz"),
)


class _Parser(argparse.ArgumentParser):
    """Raises ``WaferUsageError``, so that ``--json`` and exit codes cover usage errors."""

    def error(self, message: str) -> NoReturn:
        raise WaferUsageError(f"{message}; see {self.prog} --help.")


def add_arguments(subparsers: argparse._SubParsersAction[Any]) -> None:  # pyright: ignore[reportPrivateUsage]
    """Add the four commands to a parser's sub-commands; each sets ``run`` to its function."""
    profile = subparsers.add_parser(
        "profile", help="simulate a model: rates, breakdown, energy, trace, map"
    )
    _model_arguments(profile)
    profile.add_argument(
        "--trace", metavar="FILE", type=Path, help="write a trace that opens in Perfetto"
    )
    profile.add_argument(
        "--tokens", type=int, default=8, help="forward passes in the trace (default 8)"
    )
    profile.add_argument("--map", action="store_true", help="also draw the wafer")
    profile.set_defaults(run=_profile)

    compare = subparsers.add_parser("compare", help="compare the same model on wafers and GPUs")
    _model_arguments(compare)
    compare.add_argument(
        "--on", default="", metavar="LIST", help="machines, for example wse3,h200x8,b200x8"
    )
    compare.set_defaults(run=_compare)

    map_ = subparsers.add_parser("map", help="draw the placement of a model")
    _model_arguments(map_)
    map_.add_argument("--view", default="layers", help="layers, fill or kv")
    map_.add_argument("--wafer", type=int, default=None, help="only this wafer (0-based)")
    map_.add_argument("--columns", type=int, default=64, help="width in characters (default 64)")
    map_.add_argument("--colour", action="store_true", help="half blocks in 24-bit colour")
    map_.set_defaults(run=_map)

    validate = subparsers.add_parser(
        "validate", help="compare the frozen parameters with published figures"
    )
    validate.add_argument(
        "--rows", metavar="FILE.csv", help="a table of rows (columns: see --columns)"
    )
    validate.add_argument(
        "--columns", action="store_true", help="explain the columns of a table and stop"
    )
    validate.add_argument("--json", action="store_true", help="one JSON object on stdout")
    validate.set_defaults(run=_validate)


def _model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a preset, an ONNX file or a model folder")
    parser.add_argument("--hardware", default="wse3", help="wse2 or wse3 (default)")
    parser.add_argument("--kernels", default="cerebras-2025", help=_KERNELS_HELP)
    parser.add_argument(
        "--wafers", default="auto", help="number of wafers (default: smallest that fits)"
    )
    parser.add_argument("--mode", default="layer-rect", help="layer-rect (default) or time-mux")
    parser.add_argument(
        "--context", default="4096", help="cached tokens (default 4096; 128k works)"
    )
    parser.add_argument("--prompt", default="auto", help="prompt tokens (default: the context)")
    parser.add_argument("--batch", default="1", help="sequences (default 1)")
    parser.add_argument(
        "--spec",
        default="auto",
        help="speculation: auto (as served; default), none, or "
        "draft=4,alpha=0.8[,cost=0.1][,overlapped]",
    )
    parser.add_argument("--weight-bits", default="auto", help="16, 8 or 4 (default: the model's)")
    parser.add_argument("--kv-bits", default="16", help="16 (default) or 8")
    parser.add_argument("--clock-ghz", default="auto", help="clock (default: the hardware's)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def build_parser() -> argparse.ArgumentParser:
    """The parser; its options have the function to call as ``run``."""
    parser = _Parser(
        prog="midstream wafer", description="Wafer-scale simulation; every number is simulated."
    )
    add_arguments(parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = build_parser().parse_args(given)
        return int(arguments.run(arguments))
    except WaferError as error:
        return report_error(error, as_json="--json" in given)
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def report_error(error: WaferError, *, as_json: bool) -> int:
    """Print an error for people or as an object, and give its exit code."""
    if as_json:
        content: dict[str, object] = {"code": error.code, "message": str(error)}
        if isinstance(error, DoesNotFitError):
            content |= {"reason": error.reason, "smallest_wafers": error.smallest_wafers}
        print(json.dumps({"error": content}))
    else:
        print(f"midstream wafer: {error}", file=sys.stderr)
    return error.exit_code


def _simulate(arguments: argparse.Namespace) -> Report:
    from midstream.wafer.models import resolve
    from midstream.wafer.report import simulate

    return simulate(resolve(arguments.model), _options(arguments))


def _options(arguments: argparse.Namespace) -> Any:
    from midstream.wafer.options import Options

    given = {name: str(value) for name, value in vars(arguments).items() if name in _OPTIONS}
    return Options.from_strings({**given, "speculation": arguments.spec})


def _print_json(content: object) -> None:
    print(json.dumps(content, indent=2))


def _profile(arguments: argparse.Namespace) -> int:
    from midstream.wafer.text import report_text

    if arguments.tokens < 1:
        raise WaferUsageError(f"A trace of {arguments.tokens} passes is empty; use 1 or more.")
    report = _simulate(arguments)
    if arguments.trace is not None:
        _write_trace(report, arguments.trace, arguments.tokens)
    if arguments.json:
        content = report.as_dict()
        if arguments.trace is not None:
            content["trace"] = str(arguments.trace)
        if arguments.map:
            content["map"] = _maps(report)
        _print_json(content)
        return 0
    print(report_text(report))
    if arguments.trace is not None:
        print(f"\ntrace (simulated wafer clock) written to {arguments.trace}; open it in Perfetto")
    if arguments.map:
        from midstream.wafer.text import legend, wafer_text

        if report.plan.wafers > 1:
            print(f"\nthe first of {report.plan.wafers} wafers; midstream wafer map draws them all")
        print("\n" + wafer_text(report.plan) + "\n" + legend(report.plan))
    return 0


def _write_trace(report: Report, target: Path, tokens: int) -> None:
    from midstream.wafer.trace import TracedPass, trace_events

    step = report.step
    passes = [
        TracedPass(number * step.seconds * 1e6, step, 1, report.options.context)
        for number in range(tokens)
    ]
    try:
        target.write_text(json.dumps(trace_events(report.plan, passes)), encoding="utf-8")
    except OSError as error:
        raise WaferUsageError(
            f"The trace cannot be written to '{target}': {error.strerror}."
        ) from error


def _compare(arguments: argparse.Namespace) -> int:
    from midstream.wafer.baselines import DEFAULT_MACHINES, compare
    from midstream.wafer.models import resolve
    from midstream.wafer.text import comparison_text

    names = [name.strip() for name in arguments.on.split(",") if name.strip()] or list(
        DEFAULT_MACHINES
    )
    if not arguments.on:
        names[0] = arguments.hardware
    contenders = compare(resolve(arguments.model), _options(arguments), names)
    if arguments.json:
        machines = [contender.as_dict() for contender in contenders]
        _print_json({"simulated": True, "model": arguments.model, "machines": machines})
    else:
        print(comparison_text(arguments.model, contenders))
    return 0


def _maps(report: Report) -> list[dict[str, object]]:
    return [
        {
            "wafer": item.wafer,
            "name": item.name,
            "rect": item.rect.corners,
            "used_bytes_per_pe": report.plan.used_bytes(item),
        }
        for item in report.plan.items
    ]


def _map(arguments: argparse.Namespace) -> int:
    from midstream.wafer.picture import VIEWS
    from midstream.wafer.text import legend, wafer_text

    report = _simulate(arguments)
    plan = report.plan
    if arguments.view not in VIEWS:
        raise WaferUsageError(f"View '{arguments.view}' is unknown; use {', '.join(VIEWS)}.")
    if not 8 <= arguments.columns <= 762:
        raise WaferUsageError(
            f"A map of {arguments.columns} columns cannot be drawn; use 8 to 762."
        )
    wanted = range(plan.wafers) if arguments.wafer is None else [arguments.wafer]
    if arguments.wafer is not None and not 0 <= arguments.wafer < plan.wafers:
        raise WaferUsageError(
            f"There is no wafer {arguments.wafer}; the plan has 0 to {plan.wafers - 1}."
        )
    if arguments.json:
        _print_json({"simulated": True, "wafers": plan.wafers, "items": _maps(report)})
        return 0
    for number in wanted:
        names = [item.name for item in plan.items if item.wafer == number]
        print(
            f"wafer {number} of {plan.wafers}, {plan.hw.label}: {names[0]} to {names[-1]} "
            "(simulated placement)"
        )
        print(
            wafer_text(
                plan,
                wafer=number,
                columns=arguments.columns,
                view=arguments.view,
                context=report.options.context,
                colour=arguments.colour,
            )
        )
    print(legend(plan, arguments.view))
    return 0


def _validate(arguments: argparse.Namespace) -> int:
    from midstream.wafer import rows as row_format
    from midstream.wafer.text import validation_text
    from midstream.wafer.validation import validate

    if arguments.columns:
        print(row_format.__doc__)
        return 0
    result: Validation = validate(arguments.rows)
    if arguments.json:
        _print_json(result.as_dict())
    else:
        print(validation_text(result))
    if not result.checked:
        raise WaferUsageError(
            "No row of the table could be predicted; see midstream wafer validate --columns."
        )
    return 0 if result.passed else 1
