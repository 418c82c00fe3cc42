"""Credentials of many issuers and in many places are found; what only looks like one is not."""

from __future__ import annotations

from midstream.guard.secrets import find_secrets, mask
from tests.helpers.labelled_secrets import PROVIDERS, SAFE, secret_lines


def test_recall() -> None:
    lines = secret_lines()
    assert len(PROVIDERS) >= 60
    missed = [(kind, line) for kind, line in lines if not any(find_secrets(line))]
    assert len(missed) <= 0.02 * len(lines), missed


def test_what_is_no_credential_is_left_alone() -> None:
    assert [line for line in SAFE if any(find_secrets(line))] == []


def test_what_is_found_is_masked() -> None:
    for _, line in secret_lines():
        for secret in find_secrets(line):
            if not secret.rule.endswith("private-key"):
                assert line[secret.start : secret.stop] not in mask(line)
