"""What the package says of itself: one version, pinned dependencies, supported Pythons."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

import midstream

ROOT = Path(midstream.__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")


def test_the_version_has_one_source() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert re.fullmatch(r"\d+\.\d+\.\d+", midstream.__version__)


def test_the_lock_pins_every_direct_dependency_within_its_range() -> None:
    pinned = dict(re.findall(r"^([a-z0-9.-]+)(?:\[[a-z,]+\])?==([^ ;\\]+)", LOCK, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["test"], *extras["lint"]]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


def test_the_lock_names_no_index() -> None:
    assert "://" not in LOCK
    assert all("--hash=sha256:" in block for block in re.split(r"\n(?=[a-z])", LOCK)[1:])
