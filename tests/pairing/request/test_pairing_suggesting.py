"""What to try first in a folder."""

from __future__ import annotations

from pathlib import Path

from midstream.pairing.request.suggesting import suggest

FILES = {
    "app.py": "def sign(x):\n    if x < 0:\n        return -1\n    else:\n        return 1\n",
    "deep/in/more.py": "def known(x):\n    return x != None\n",
    "tests/test_app.py": "def load(f):\n    try:\n        f()\n    except:\n        pass\n",
    "notes.md": "# Notes\n",
}


def write(root: Path, files: dict[str, str] = FILES) -> list[str]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return list(files)


def test_code_comes_before_tests_and_shallow_before_deep(tmp_path: Path) -> None:
    paths = [s.path for s in suggest(tmp_path, write(tmp_path))]
    assert paths == ["app.py", "deep/in/more.py", "tests/test_app.py"]


def test_changed_files_come_first(tmp_path: Path) -> None:
    first = suggest(tmp_path, write(tmp_path), ["tests/test_app.py", "notes.md"])[0]
    assert first.path == "tests/test_app.py"


def test_two_of_a_kind_rather_than_too_few(tmp_path: Path) -> None:
    text = FILES["app.py"]
    files = {"a.py": text, "b.py": text.replace("sign", "side"), "c.py": FILES["deep/in/more.py"]}
    found = suggest(tmp_path, write(tmp_path, files))
    assert [s.title for s in found] == ["Un-nest", "Compare with is", "Un-nest"]


def test_files_that_are_gone_or_no_text_are_passed_over(tmp_path: Path) -> None:
    files = write(tmp_path)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    assert len(suggest(tmp_path, ["gone.py", "binary.py", *files])) == 3
    assert suggest(tmp_path, ["notes.md"]) == ()
