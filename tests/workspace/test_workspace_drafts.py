"""What was typed for a folder, kept in the state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.workspace.drafts import MAX_SENT, MAX_SENT_LENGTH, Drafts, read_drafts, write_drafts
from midstream.workspace.paths import root_state_dir


def test_drafts_come_back_for_their_root_only(tmp_path: Path) -> None:
    state, root = tmp_path / "state", tmp_path / "a"
    write_drafts(state, root, Drafts("half a sen\ntence", ["one", "två"]))
    assert read_drafts(state, root) == Drafts("half a sen\ntence", ["one", "två"])
    assert read_drafts(state, tmp_path / "b") == Drafts()
    (file,) = root_state_dir(state, root).iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_what_was_sent_in_a_session_is_forgotten_with_it(tmp_path: Path) -> None:
    drafts = Drafts("", ["one", "both"])
    drafts.assign(tmp_path / "first.jsonl")
    drafts.sent += ["two", "both"]
    drafts.assign(tmp_path / "second.jsonl")
    write_drafts(tmp_path, tmp_path, drafts)
    drafts = read_drafts(tmp_path, tmp_path)
    drafts.forget(tmp_path / "first.jsonl")
    assert drafts.sent == ["two"]


def test_the_last_and_not_too_long_ones_are_kept(tmp_path: Path) -> None:
    sent = ["x" * (MAX_SENT_LENGTH + 1), *map(str, range(MAX_SENT + 5))]
    write_drafts(tmp_path, tmp_path, Drafts("", sent))
    assert read_drafts(tmp_path, tmp_path).sent == sent[-MAX_SENT:]


@pytest.mark.parametrize("text", ["", "[1]", '{"draft": 3, "sent": {}}', '{"sent": [1]}', "\xff"])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, text: str) -> None:
    write_drafts(tmp_path, tmp_path, Drafts("x"))
    (file,) = root_state_dir(tmp_path, tmp_path).iterdir()
    file.write_bytes(text.encode("latin-1"))
    assert read_drafts(tmp_path, tmp_path) == Drafts()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "roots").write_text("a file")
    write_drafts(tmp_path, tmp_path, Drafts("x"))
    assert read_drafts(tmp_path, tmp_path) == Drafts()


def test_wrapping_is_kept(tmp_path: Path) -> None:
    write_drafts(tmp_path, tmp_path, Drafts(wrap=True))
    assert read_drafts(tmp_path, tmp_path).wrap


def test_pasted_blocks_are_kept_with_their_draft(tmp_path: Path) -> None:
    write_drafts(tmp_path, tmp_path, Drafts("like a\nb", pasted=["a\nb", "gone"]))
    assert read_drafts(tmp_path, tmp_path).pasted == ["a\nb"]


def test_what_is_erased_is_noticed_once() -> None:
    drafts = Drafts()
    assert not drafts.note("", [])
    assert not drafts.note("half", ["half"])
    assert drafts.note(" \n", [])
    assert (drafts.draft, drafts.pasted) == ("", [])
    assert not drafts.note("", [])
