"""The guard as a package of its own: built, and run where nothing else of Midstream's is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import midstream

ROOT = Path(midstream.__file__).parents[2]
FOLDER = ROOT / "packages" / "guard"
DANGEROUS = 'import subprocess\n\n\ndef show(name):\n    subprocess.run("ls " + name, shell=True)\n'
ALONE = """
import sys
from importlib.abc import MetaPathFinder

class Nothing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in sys.stdlib_module_names and first not in {allowed}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nothing())
sys.path.insert(0, {folder!r})
sys.argv[1:] = {arguments!r}
from midstream_guard import main
sys.exit(main())
"""


def requirements(path: Path) -> dict[str, str]:
    found: list[str] = tomllib.loads(path.read_text("utf-8"))["project"]["dependencies"]
    return {re.split(r"[\[<>=]", line)[0]: line for line in found}


def test_it_takes_the_versions_that_midstream_takes() -> None:
    whole = requirements(ROOT / "pyproject.toml")
    for name, line in requirements(FOLDER / "pyproject.toml").items():
        assert whole[name] == line


@pytest.mark.system
def test_the_wheel_finds_the_same_with_ruff_and_platformdirs_alone(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(FOLDER)],
        check=True,
    )
    (wheel,) = tmp_path.glob("midstream_guard-*.whl")
    assert wheel.stat().st_size < 3_000_000
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = tmp_path / "code"
    code.mkdir()
    (code / "shows.py").write_text(DANGEROUS)
    program = ALONE.format(
        allowed={"midstream_guard", "midstream", "platformdirs", "ruff"},
        folder=str(tmp_path / "site"),
        arguments=[str(code)],
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, run.stderr
    assert "shows.py:5: halt S602" in run.stdout
