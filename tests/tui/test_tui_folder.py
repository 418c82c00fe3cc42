"""The list of files follows the folder: files that others make, move and take away."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.stage import Stage, on_stage

WIDE = (160, 40)


def start_page(stage: Stage) -> str:
    return "\n".join(strip.text for strip in stage.screen._compositor.render_strips())


def make_repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)


async def watching(stage: Stage) -> None:
    await stage.until(lambda: stage.session.external.watching == "native", "watching")


@pytest.mark.parametrize("repository", [False, True])
async def test_an_empty_folder_says_so_and_shows_the_first_file(
    tmp_path: Path, repository: bool
) -> None:
    root = tmp_path / "new"
    root.mkdir()
    if repository:
        make_repository(root)
    async with on_stage(root, size=WIDE) as stage:
        await stage.until(lambda: "no files yet" in start_page(stage), "empty folder")
        await stage.press("escape", "o")
        assert "has no files yet" in stage.notice
        await watching(stage)
        (root / "first.py").write_text("x = 1\n")
        await stage.until(lambda: "1 file" in start_page(stage), "first file")
        assert "first.py" in [row.value for row in stage.rail.rows]
        await stage.press("o", "f", "i", "enter")
        await stage.until(lambda: stage.path == "first.py", "opened")


async def test_what_others_make_move_and_take_away(project: Path) -> None:
    make_repository(project)
    async with on_stage(project, size=WIDE) as stage:
        await stage.until(lambda: len(stage.files) == 2, "listed")
        await watching(stage)
        (project / "pkg" / "new.py").write_text("y = 1\n")
        await stage.until(lambda: "pkg/new.py" in stage.files, "new file")
        (project / ".gitignore").write_text("*.log\nnotes.md\n")
        await stage.until(lambda: "notes.md" not in stage.files, "ignored file")
        (project / "run.log").write_text("done\n")
        (project / "more").mkdir()
        (project / "more" / "deep.py").write_text("z = 1\n")
        await stage.until(lambda: "more/deep.py" in stage.files, "new folder")
        assert "run.log" not in stage.files
        shutil.move(project / "pkg", project.parent / "elsewhere")
        await stage.until(
            lambda: stage.files == (".gitignore", "more/deep.py"), "folder moved away"
        )
        (project / "more" / "deep.py").unlink()
        await stage.until(lambda: stage.files == (".gitignore",), "file taken away")
