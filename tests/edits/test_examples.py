"""The examples in docstrings run, and the package stays pure."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import midstream.edits

MODULES = [
    module.name
    for module in pkgutil.walk_packages(midstream.edits.__path__, "midstream.edits.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", ["midstream.edits", *MODULES])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_imports_only_the_standard_library_and_rapidfuzz() -> None:
    names = [name for name in MODULES if not name.endswith(".lexing")]
    code = (
        f"import sys, importlib; [importlib.import_module(n) for n in {names!r}]; "
        "print(*sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    third_party = {n for n in run.stdout.split() if not n.startswith(("_", "sitecustomize"))}
    assert "rapidfuzz" in third_party
    loaded = third_party & {"textual", "pygments", "numpy", "git", "onnxruntime", "msgspec"}
    assert not loaded
    rooms = ("engine", "serving", "tui", "pairing", "workspace", "responses", "guard", "wafer")
    code = code.replace("m.split('.')[0] for m", "m for m")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [
        n for n in run.stdout.split() if n.startswith(tuple(f"midstream.{r}" for r in rooms))
    ]
