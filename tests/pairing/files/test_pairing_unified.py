"""The streamed diff is a patch that git applies, byte for byte."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from midstream.edits.documents import LineEdit, SourceText
from midstream.pairing.files.unified import UnifiedDiff
from tests.helpers.pairing import git


def random_text(rng: random.Random) -> bytes:
    end = rng.choice(["\n", "\n", "\r\n"])
    lines = [f"line {rng.randrange(8)}" for _ in range(rng.randrange(0, 40))]
    text = end.join(lines)
    return (text + end * bool(lines and rng.random() < 0.7)).encode()


def random_edits(rng: random.Random, length: int) -> list[LineEdit]:
    edits: list[LineEdit] = []
    at = 0
    while at <= length and rng.random() < 0.8:
        start = rng.randrange(at, length + 1)
        stop = min(length, start + rng.randrange(0, 4))
        new = tuple(f"new {rng.random()}" for _ in range(rng.randrange(0, 4)))
        if new or stop > start:
            edits.append(LineEdit(start, stop, new))
        at = stop + 1
    return edits


@pytest.mark.parametrize("seed", range(40))
def test_git_applies_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = random_text(rng)
    base = SourceText.from_bytes(data)
    edits = random_edits(rng, len(base.lines))
    if not edits or not data:
        return
    diff = UnifiedDiff("a.txt", base)
    patch: list[str] = []
    for edit in edits:
        patch += diff.passed(edit.start)
        patch += diff.add(edit)
    patch += diff.finish()
    (tmp_path / "a.txt").write_bytes(data)
    git(tmp_path, "init", "-q")
    command = [
        "git",
        "-C",
        str(tmp_path),
        "-c",
        "core.autocrlf=false",
        "apply",
        "--whitespace=nowarn",
    ]
    wanted = base.replace(edits).to_bytes()
    if not wanted:
        return  # git reads a patch that empties a file as a deletion
    subprocess.run(command, input="".join(patch).encode(), check=True, timeout=20)
    assert (tmp_path / "a.txt").read_bytes() == wanted


def test_a_group_comes_as_soon_as_nothing_can_join_it() -> None:
    base = SourceText.from_text("".join(f"{n}\n" for n in range(30)))
    diff = UnifiedDiff("a", base)
    assert list(diff.add(LineEdit(5, 6, ("x",)))) == []
    assert list(diff.passed(12)) == []
    assert "".join(diff.passed(13)) == (
        "--- a/a\n+++ b/a\n@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"
    )
    assert list(diff.add(LineEdit(20, 20, ("y",)))) == []
    assert "".join(diff.finish()) == "@@ -18,6 +18,7 @@\n 17\n 18\n 19\n+y\n 20\n 21\n 22\n"
    assert list(diff.finish()) == []
