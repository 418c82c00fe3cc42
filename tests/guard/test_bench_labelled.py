"""``midstream bench guard --labelled`` counts files, lines and marked statements, half by half."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.bench.guard import Half, run, samples_in
from midstream.errors import UsageError

BAD = "def f(db, n):\n    db.execute(\"select a from t where n = '%s'\" % n)\n"
GOOD = "def f(db, n):\n    db.execute('select a from t where n = ?', (n,))\n"


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, float]:
    run(["--labelled", *arguments, "--json"])
    found = json.loads(capsys.readouterr().out)["figures"]
    return {figure["name"]: figure["value"] for figure in found}


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, texts in (("bad", [BAD, BAD, BAD, GOOD]), ("good", [GOOD, GOOD, GOOD, BAD])):
        (tmp_path / kind).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / kind / f"{number}.py").write_text(text)
    assert list(figures(capsys, str(tmp_path)).values()) == [75, 25]
    assert list(figures(capsys, str(tmp_path), "--rule", "secret-").values()) == [0, 0]


def test_lines_and_halves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad-lines").mkdir()
    lines = [f"password = 'kX9#mP2$vL5q{n}'" for n in range(40)]
    (tmp_path / "bad-lines" / "a.conf").write_text("\n".join(lines))
    halves = [sample.half for sample in samples_in(tmp_path)]
    assert 10 <= halves.count(Half.TUNE) <= 30
    name = f"halted of what is labelled bad, test ({halves.count(Half.TEST)})"
    assert figures(capsys, str(tmp_path), "--half", "test") == {name: 100}


def test_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "marked").mkdir()
    call, safe = BAD.split("\n")[1].strip(), GOOD.split("\n")[1].strip()
    text = f"# ruleid: x\n{call}\n\n# ok: x\n{safe}\n# ruleid: x\n{safe}\n\n{call}\n"
    (tmp_path / "marked" / "a.py").write_text(text)
    assert list(figures(capsys, str(tmp_path)).values()) == [50, 0]


def test_an_empty_folder_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no samples"):
        run(["--labelled", str(tmp_path)])
