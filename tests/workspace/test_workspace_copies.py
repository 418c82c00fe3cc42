"""Throw-away copies of a folder: what is in them, what they never touch, what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.workspace import copies
from midstream.workspace.copies import CopyRefusedError, CopyStoppedError, make_copy
from tests.helpers.pairing import make_repo


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = make_repo(
        tmp_path / "work",
        {
            ".gitignore": "__pycache__/\nbuild/\n.venv/\nnode_modules/\n_version.py\n",
            "pkg/shop.py": "one = 1\n",
            "pkg/gone.py": "gone = 1\n",
            "run.sh": "#!/bin/sh\n",
            "web/app.js": "1\n",
        },
    )
    (root / "run.sh").chmod(0o755)
    (root / "new.txt").write_text("untracked\n")
    for name in ("pkg/_version.py", "build/out", "pkg/__pycache__/x", "web/node_modules/d/i.js"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root.resolve()


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_a_copy_has_the_files_with_the_changes(repo: Path) -> None:
    before = files(repo)
    changes = {"pkg/shop.py": b"one = 2\n", "pkg/gone.py": None, "deep/new.py": b"new\n"}
    copy = make_copy(repo, changes)
    assert (copy.root / "pkg/shop.py").read_text() == "one = 2\n"
    assert not (copy.root / "pkg/gone.py").exists()
    assert (copy.root / "deep/new.py").read_text() == "new\n"
    assert (copy.root / "new.txt").read_text() == "untracked\n"
    assert os.access(copy.root / "run.sh", os.X_OK)
    assert (copy.root / "pkg/_version.py").is_file()
    for left_out in (".git", "build", "pkg/__pycache__"):
        assert not (copy.root / left_out).exists()
    assert (copy.root / "web/node_modules").is_symlink()
    assert (copy.root / "web/node_modules/d/i.js").read_text() == "web/node_modules/d/i.js"
    copy.remove()
    assert not copy.root.exists()
    assert files(repo) == before


def test_links_lead_into_the_copy(repo: Path) -> None:
    (repo / "relative").symlink_to("pkg/shop.py")
    (repo / "absolute").symlink_to(repo / "pkg/shop.py")
    (repo / "dangling").symlink_to("nowhere")
    copy = make_copy(repo, {})
    for name in ("relative", "absolute"):
        (copy.root / name).write_text("written through a link\n")
    assert (copy.root / "pkg/shop.py").read_text() == "written through a link\n"
    assert (repo / "pkg/shop.py").read_text() == "one = 1\n"
    assert (copy.root / "dangling").is_symlink()
    copy.remove()


def test_without_a_repository_the_walk_is_copied(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    (root / "venv/lib").mkdir(parents=True)
    (root / "a.py").write_text("a = 1\n")
    copy = make_copy(root.resolve(), {"a.py": b"a = 2\n"})
    assert (copy.root / "a.py").read_text() == "a = 2\n"
    assert (copy.root / "venv").is_symlink()
    copy.remove()
    assert (root / "venv/lib").is_dir()


def test_editable_installs_are_imported_from_the_copy(repo: Path) -> None:
    packages = repo / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "shop.pth").write_text(f"{repo / 'pkg'}\nimport os\n/elsewhere\n")
    (packages / "__editable___web_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'app': '{repo / 'web' / 'app'}'}}\nNAMESPACES = {{}}\n"
    )
    (packages / "__editable___broken_finder.py").write_text("MAPPING = {'a': (\n")
    (repo / "src").mkdir()
    (repo / "src/lib.py").write_text("")
    copy = make_copy(repo, {})
    assert copy.python_path == (copy.root / "src", copy.root / "pkg", copy.root / "web")
    copy.remove()


def test_a_copy_of_a_dead_process_is_removed_with_the_next(repo: Path, temporary: Path) -> None:
    code = (
        "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from pathlib import Path\n"
        "from midstream.workspace.copies import make_copy\n"
        "print(make_copy(Path(sys.argv[2]), {}).root); sys.stdout.flush(); os._exit(9)\n"
    )
    left = subprocess.run(
        [sys.executable, "-c", code, str(temporary), str(repo)], capture_output=True, text=True
    ).stdout.strip()
    assert Path(left).is_dir()
    other = temporary / f"{copies.PREFIX}notes"
    other.mkdir()
    first, second = make_copy(repo, {}), make_copy(repo, {})
    assert not Path(left).exists()
    assert first.root.is_dir()
    assert second.root.is_dir()
    assert other.is_dir()


def test_a_copy_that_a_command_locked_is_removed(repo: Path) -> None:
    copy = make_copy(repo, {})
    (copy.root / "pkg").chmod(0o000)
    copy.remove()
    assert not copy.root.exists()


def test_nothing_is_left_of_a_copy_that_is_refused(
    repo: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CopyStoppedError):
        make_copy(repo, {}, lambda: True)
    monkeypatch.setattr(copies, "MAX_BYTES", 10)
    with pytest.raises(CopyRefusedError, match="at most"):
        make_copy(repo, {})
    assert list(temporary.iterdir()) == []
