"""Permissions to run what a folder suggests: for one folder and command, kept for good."""

from __future__ import annotations

from pathlib import Path

from midstream.pairing.checks.permissions import FILE, is_permitted, permit
from midstream.pairing.models.disclosures import note_disclosed


def test_a_permission_is_for_one_command_in_one_folder(state: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert not is_permitted(one, "make test")
    permit(one, "make test")
    permit(one, "make test")
    permit(other, "make check")
    assert is_permitted(one, "make test")
    assert not is_permitted(one, "make check")
    assert not is_permitted(other, "make test")


def test_no_permission_is_dropped_for_many_others_or_for_notices(
    state: Path, tmp_path: Path
) -> None:
    permit(tmp_path, "make test")
    for number in range(300):
        permit(tmp_path / str(number), "make test")
        note_disclosed(f"https://host-{number}/v1")
    assert is_permitted(tmp_path, "make test")
    assert is_permitted(tmp_path / "299", "make test")


def test_a_damaged_file_permits_nothing(state: Path, tmp_path: Path) -> None:
    permit(tmp_path, "make test")
    for damage in (b"damaged", b'["make test"]', b"null"):
        (state / FILE).write_bytes(damage)
        assert not is_permitted(tmp_path, "make test")
    permit(tmp_path, "make test")
    assert is_permitted(tmp_path, "make test")
