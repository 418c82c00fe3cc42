"""The words of the screen."""

from __future__ import annotations

import pytest

from midstream.words import in_review


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Accept all in every file", "Keep all in every file"),
        ("Reject the hunk and tell the model why", "Put back the hunk and tell the model why"),
        ("reject + why", "put back + why"),
        ("Commit accepted changes", "Commit kept changes"),
        ("Nothing was rejected; it rejects", "Nothing was put back; it puts back"),
        ("Acceptance of what is unacceptable", "Acceptance of what is unacceptable"),
    ],
)
def test_a_review_keeps_and_puts_back(text: str, meant: str) -> None:
    assert in_review(text) == meant
