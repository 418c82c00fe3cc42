"""Renames with the real keys in real packages: ask, `E`, `A`; no use is missed, it still runs.

The gate renames some names of an installed package. On demand (`-m slow`), 100 names of three
source distributions, whose own tests run then; what fails has to fail without the renames as well.
`MIDSTREAM_SDISTS` has their folders (`pip download --no-deps --no-binary :all:`, unpacked); what
their tests need besides pytest, such as `pretend`, is found on `PYTHONPATH`.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.helpers.rename_oracle import Package, Symbol, used
from tests.helpers.stage import Stage, on_stage

SUITES = {"markdown_it": 34, "packaging": 33, "pathspec": 33}


def named(text: str, symbol: Symbol, new: str) -> str:
    return re.sub(rf"\b{symbol.name}\b", new, text)


async def rename(stage: Stage, symbol: Symbol, new: str) -> int:
    """Rename a definition, repeat that at its uses, accept all; returns the flagged hunks."""
    stage.screen.navigate.show_path(symbol.path, line=symbol.line)
    await stage.until(lambda: stage.path == symbol.path, f"open {symbol.path}")
    await stage.until(lambda: stage.screen.aim.cursor_line == symbol.line, "the definition")
    await stage.press("v")
    await stage.instruct(f"rename `{symbol.name}` to `{new}`")
    stage.model.give(named(stage.model.region, symbol, new))
    stage.model.give(None)
    await stage.until(lambda: stage.pane.undecided_hunk is not None, "a hunk")
    await stage.until(lambda: not stage.session.turns.busy, "the end")
    await stage.press("E")
    searches = [worker for worker in stage.app.workers if worker.group == "elsewhere"]
    while not all(worker.is_finished for worker in searches):  # As long as the test may take.
        await stage.pilot.pause(0.05)
    root = stage.session.root
    session, asked, flagged = stage.session, len(stage.model.requests), 0
    while session.background.waiting or session.turns.busy:
        if len(stage.model.requests) > asked:  # about places that may mean something else
            asked += 1
            stage.model.give(named(stage.model.region, symbol, new))
            stage.model.give(None)
        await stage.pilot.pause(0.01)
    while waiting := session.hunks.undecided():
        if not session.hunks.undecided(stage.path):
            await stage.press("]")
            await stage.until(lambda: session.hunks.undecided(stage.path), "the next file")
        doubtful = [hunk for hunk in waiting if session.turns.doubts(hunk)]
        flagged += len(doubtful)
        left = {hunk.id for hunk in waiting}
        await stage.press("a" if stage.pane.undecided_hunk in doubtful else "A")
        await stage.until(
            lambda left=left: not left <= {hunk.id for hunk in session.hunks.undecided()}, "A"
        )
    touched = [session.files[path] for path in session.files]
    await stage.until(
        lambda: all(p.composed().text() == (root / p.path).read_text("utf-8") for p in touched),
        "what is accepted on disk",
    )
    return flagged


def left_over(package: Package, symbol: Symbol) -> list[str]:
    """Where a name still stands, or a file does not parse any more."""
    wrong: list[str] = []
    for path in package.texts:
        text = (package.root / path).read_text("utf-8")
        try:
            names = set(used(ast.parse(text)))
        except SyntaxError as error:
            wrong.append(f"{path}: {error}")
            continue
        if symbol.name in names:
            wrong.append(f"{symbol.name} in {path}")
    return wrong


@pytest.mark.system
@pytest.mark.timeout(300)
async def test_renames_by_keys_miss_no_use(tmp_path: Path) -> None:
    package = Package.copied("markdown_it", tmp_path)
    symbols = package.symbols(3)
    async with on_stage(tmp_path) as stage:
        for symbol in symbols:
            assert await rename(stage, symbol, f"{symbol.name}_renamed") == 0
            assert left_over(package, symbol) == []


def unpacked(name: str, folder: Path) -> Path:
    """A copy of a source distribution."""
    folder.mkdir(exist_ok=True)
    (source,) = Path(os.environ["MIDSTREAM_SDISTS"]).glob(f"{name}*/")
    return Path(shutil.copytree(source, folder / name))


def failures(folder: Path, tests: Iterable[str] = ("tests",)) -> set[str]:
    """The tests of a distribution that do not pass."""
    places = [str(folder), str(folder / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    # In the order of the files: the suites were written for it, and some tests set up later ones.
    options = ["-q", "-n0", "-rfE", "--no-header", "-W", "default"]
    options += ["-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert re.search(r"\d (passed|failed)", done.stdout), done.stdout[-2000:]
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M))


@pytest.mark.slow
@pytest.mark.timeout(6000)
@pytest.mark.skipif("MIDSTREAM_SDISTS" not in os.environ, reason="MIDSTREAM_SDISTS is not set")
@pytest.mark.parametrize("name", SUITES)
async def test_the_suite_passes_after_many_renames(tmp_path: Path, name: str) -> None:
    folder = unpacked(name, tmp_path)
    inside = f"src/{name}/" if (folder / "src").is_dir() else f"{name}/"
    package = Package(folder, inside)
    symbols = package.symbols(SUITES[name])
    uses, flagged, wrong = 0, 0, []
    async with on_stage(folder) as stage:
        for symbol in symbols:
            uses += package.uses[symbol.name]
            flagged += await rename(stage, symbol, f"{symbol.name}_renamed")
            wrong += left_over(package, symbol)
            print(name, symbol, flagged, wrong, flush=True)
    new = failures(folder)
    if new:  # Which of them fail in the untouched distribution as well?
        new -= failures(unpacked(name, tmp_path / "before"), sorted(new))
    print(f"{name}: {len(symbols)} symbols, {uses} uses, {wrong}, {flagged} flagged, {new}")
    assert wrong == []
    assert new == set()
