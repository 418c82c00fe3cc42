"""The requests of `midstream models check --edits`."""

from __future__ import annotations

import pytest

from midstream.pairing.trial.requests import load_requests


def test_every_beginning_has_all_languages() -> None:
    requests = load_requests()
    assert len(requests) >= 120
    assert len({request.id for request in requests}) == len(requests)
    assert {request.language for request in load_requests(30)} == {r.language for r in requests}
    assert load_requests(7) == requests[:7]


@pytest.mark.system
async def test_no_request_is_carried_out_already() -> None:
    for request in load_requests():
        assert await request.fault(request.project[request.expects]), request.id


async def test_an_answer_may_not_write(tmp_path: object) -> None:
    request = next(r for r in load_requests() if r.check)
    said = await request.fault(f"open({str(tmp_path) + '/x'!r}, 'w')")
    assert "PermissionError" in said
