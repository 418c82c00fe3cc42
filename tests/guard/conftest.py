"""Fixtures of the guard's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from midstream.guard.scanner import Scanner


@pytest.fixture
async def scanner() -> AsyncIterator[Scanner]:
    scanner = Scanner()
    yield scanner
    await scanner.close()
