"""The machine and versions that a benchmark ran on, and comparison with an earlier output.

Figures of two machines cannot be compared, but ratios can: how many times as quick as another
program that ran in turns with ours, a share of a limit. Where machines differ, only these are
shown.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from midstream.engine.graph import usable_cores
from midstream.errors import UserError

CPUINFO = Path("/proc/cpuinfo")

FLAGS = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_int8",
    "amx_bf16",
    "asimddp",
    "i8mm",
    "sve",
)
"""Features of a processor that change which kernels engines run."""

PACKAGES = (
    "midstream",
    "onnxruntime",
    "onnxruntime-genai",
    "llama-cpp-python",
    "xllamacpp",
    "numpy",
    "textual",
)

RELATIVE = ("times", "cpu", "share", "forwards")
"""Parts of the names of figures that mean something on another machine."""


def machine_facts() -> dict[str, str]:
    """Return processor, cores, features, system and versions, each as text."""
    model, flags = _processor()
    facts = {
        "processor": model or platform.machine(),
        "cores": str(usable_cores()),
        "features": " ".join(flag for flag in FLAGS if flag in flags),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    if hasattr(os, "getloadavg"):
        facts["load"] = f"{os.getloadavg()[0]:.1f}"
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return {name: text for name, text in facts.items() if text}


def _processor() -> tuple[str, frozenset[str]]:
    """Return name and features of the first processor, as Linux tells them."""
    try:
        first, _, _ = CPUINFO.read_text("utf-8").partition("\n\n")
    except OSError:
        return "", frozenset()
    told: dict[str, str] = {}
    for line in first.splitlines():
        name, _, value = line.partition(":")
        told[name.strip()] = value.strip()
    flags = told.get("flags") or told.get("Features") or ""
    return told.get("model name", ""), frozenset(flags.split())


def read_output(path: Path) -> dict[str, Any]:
    """Read what a bench printed with ``--json``.

    Raises:
        UserError: It cannot be read, or is none.
    """
    try:
        found: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be compared with ({error}); give a file that the same command "
            "printed with --json."
        ) from error
    if not isinstance(found, dict):
        raise UserError(f"{path} is no output of this command; print one with --json.")
    return cast("dict[str, Any]", found)


def compared(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for every figure that both outputs have: earlier, now, and their ratio."""
    before, after = dict(_figures(earlier)), dict(_figures(now))
    here = [key for key in after if key in before]
    differs = _hardware(earlier) != _hardware(now)
    if differs:
        yield "another machine: only what is relative is compared"
        here = [key for key in here if any(part in name for name in key for part in RELATIVE)]
    for key in here:
        was, value = before[key], after[key]
        ratio = f"{value / was:6.2f}x" if was else "      -"
        yield f"  {ratio}  {was:12.5g} -> {value:12.5g}  {', '.join(key)}"
    if not here:
        yield "  nothing in common"


def _hardware(output: Mapping[str, Any]) -> tuple[object, ...]:
    facts: Mapping[str, object] = output.get("machine") or {}
    return tuple(facts.get(name) for name in ("processor", "cores", "features"))


def _figures(value: object, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield every number with the names that lead to it; items of lists by their ``name``."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield at, float(value)
    elif isinstance(value, dict):
        for name, part in cast("dict[str, object]", value).items():
            yield from _figures(part, (*at, name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part in cast("Sequence[object]", value):
            if isinstance(part, dict) and "name" in part:
                named = cast("dict[str, object]", part)
                yield from _figures(named.get("value"), (*at, str(named["name"])))
