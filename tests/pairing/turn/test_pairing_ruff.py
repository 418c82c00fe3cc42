"""Findings of ruff in several files at once, whatever they are called and wherever they lie."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.pairing.status import SessionStatus
from midstream.pairing.turn.checks import LintFinding, Verdict, look_at_each, tell_unread
from tests.helpers.broken_ruff import BROKEN, REAL, BrokenRuff
from tests.helpers.full_disk import full_disk

KNOWN = ["import os", "print(os)"]
UNKNOWN = ["print(gone)"]


async def looked_at(*paths: str) -> dict[str, Verdict]:
    """The verdicts on a change that leaves a name undefined in each of some files."""
    return await look_at_each(dict.fromkeys(paths, KNOWN), dict.fromkeys(paths, UNKNOWN))


def undefined(verdicts: dict[str, Verdict]) -> dict[str, list[str]]:
    return {path: [each.undefined for each in v.introduced] for path, v in verdicts.items()}


def left(state: Path) -> list[Path]:
    """What of the texts is still in the state folder."""
    return list(state.glob("checks-*"))


async def test_a_full_disk_hides_no_finding(state: Path) -> None:
    with full_disk():
        with pytest.raises(OSError, match="too large"):
            (state / "x").write_text("x")
        verdicts = await looked_at("a.py", "b.py")
    assert undefined(verdicts) == {"a.py": ["gone"], "b.py": ["gone"]}
    assert left(state) == []


async def test_without_a_folder_that_can_be_written_no_other_is(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "file").touch()
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(state / "file"))
    opened = tmp_path / "opened"
    opened.mkdir()
    monkeypatch.chdir(opened)
    monkeypatch.setattr(tempfile, "tempdir", str(opened))  # Python's last resort.
    before = opened.stat().st_mtime_ns
    assert undefined(await looked_at("a.py", "b.py")) == {"a.py": ["gone"], "b.py": ["gone"]}
    assert opened.stat().st_mtime_ns == before, "something was made in the folder that is open"


async def test_nothing_is_left_in_the_state_folder(state: Path) -> None:
    assert not (await looked_at("a.py"))["a.py"].clean
    assert left(state) == []


@pytest.mark.parametrize(
    "odd",
    [
        *("\udcff.py", "-x.py", "a\nb.py", "[id].py", "{a,b}.py", "@at.py", "*.py", ".py"),
        *(f"{'n' * 252}.py", f"{'n' * 300}.py", "x.pyi", "build.pyw", "__init__.py"),
    ],
)
async def test_no_name_of_a_file_hides_a_finding(odd: str) -> None:
    paths = ["d/a.py", f"d/{odd}", "d/z.py"]
    assert undefined(await looked_at(*paths)) == {path: ["gone"] for path in paths}


@settings(max_examples=10, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True))
async def test_each_file_has_its_own_finding(stems: list[str]) -> None:
    before = {f"{stem}.py": ["x = 1"] for stem in stems}
    after = {path: [f"x = gone{number}"] for number, path in enumerate(before)}
    found = undefined(await look_at_each(before, after))
    assert found == {path: [f"gone{number}"] for number, path in enumerate(before)}


async def test_a_lone_surrogate_in_one_file_hides_nothing_in_another() -> None:
    texts = {"a.py": [*UNKNOWN, "# \ud800"], "b.py": UNKNOWN}
    found = undefined(await look_at_each(dict.fromkeys(texts, KNOWN), texts))
    assert found["b.py"] == ["gone"]


async def test_a_package_may_export_its_modules() -> None:
    texts = {path: ['__all__ = ["part"]'] for path in ("p/__init__.py", "p/other.py")}
    verdicts = await look_at_each(dict.fromkeys(texts, ()), texts)
    assert verdicts["p/__init__.py"].clean
    assert [each.code for each in verdicts["p/other.py"].introduced] == ["F822"]


@pytest.mark.parametrize("body", BROKEN)
async def test_a_ruff_that_does_not_work_leaves_no_file_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    BrokenRuff(tmp_path, body, monkeypatch)
    verdicts = await looked_at("a.py", "b.py")
    for verdict in verdicts.values():
        assert verdict.unread.startswith("ruff does not work (")
        assert verdict.words == "not checked by ruff"
        assert not verdict.clean
        assert not verdict.wrong
    found = Verdict(introduced=(LintFinding(1, "F821", "Undefined name `gone`"),), changed=1)
    assert found.rank < verdicts["a.py"].rank, "a text that was not looked at is no better"


async def test_a_ruff_that_hangs_leaves_no_file_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BrokenRuff(tmp_path, "exec sleep 600", monkeypatch)
    monkeypatch.setattr("midstream.pairing.turn.checks._RUFF_S", 0.1)
    monkeypatch.setattr("midstream.pairing.turn.checks._FURTHER_S", 0.0)
    verdicts = await looked_at("a.py", "b.py")
    assert {v.unread for v in verdicts.values()} == {"ruff does not work (it does not answer)"}


async def test_one_file_that_ends_ruff_hides_nothing_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BrokenRuff(tmp_path, f'grep -qs poison */*.py && kill -9 $$\nexec "{REAL}" "$@"', monkeypatch)
    texts = {"a.py": ["# poison", *UNKNOWN], "b.py": UNKNOWN}
    verdicts = await look_at_each(dict.fromkeys(texts, KNOWN), texts)
    assert verdicts["a.py"].unread
    assert undefined(verdicts) == {"a.py": [], "b.py": ["gone"]}


async def test_a_text_that_is_gone_before_ruff_reads_it_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BrokenRuff(tmp_path, f'rm -f */*.py\nexec "{REAL}" "$@"', monkeypatch)
    assert (await looked_at("a.py"))["a.py"].unread


async def test_that_ruff_does_not_work_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BrokenRuff(tmp_path, "exit 2", monkeypatch)
    status = SessionStatus()
    for _ in range(2):
        tell_unread((await looked_at("a.py", "b.py")).values(), status)
    assert [notice.text for notice in status.notices] == [
        "ruff does not work (exit code 2), so names that nothing defines are not found."
    ]
