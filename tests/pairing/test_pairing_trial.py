"""The requests of `midstream models check --edits`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.cli import main
from midstream.pairing.trial.kept import KeptTrial, keep_trial, kept_trials, trial_key
from midstream.pairing.trial.requests import load_requests
from midstream.pairing.trial.run import run_trial
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from tests.helpers.stepped import SteppedModel, served


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


async def test_a_server_is_tried_and_its_figures_are_kept(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = SteppedModel()
    model.give("def broken(\n")
    model.end()
    monkeypatch.setenv("DESK_KEY", "secret")
    async with served(model) as endpoint:
        (state / "config.toml").write_text(
            f'[endpoints.desk]\nkind = "local"\nurl = "{endpoint.url}"\nkey_env = "DESK_KEY"\n'
        )
        command = ["models", "check", "stepped", "--edits", "1", "--endpoint", "desk", "--json"]
        code = await asyncio.to_thread(main, command)

    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert said[0]["verdict"] == "wrong and flagged"
    assert said[0]["edit_format"] == said[1]["edit format"] == "region"
    assert said[1]["model"] == "stepped"
    (kept,) = kept_trials().values()
    assert (kept.requests, kept.right, kept.unflagged) == (1, 0, 0)
    assert trial_key(endpoint.url, "stepped") in kept_trials()


@pytest.mark.parametrize(
    ("old", "verdict", "why"),
    [
        ("nowhere", "refused", "app.py does not exist"),
        ("    return separator.join(words)", "right", ""),
    ],
)
async def test_edits_under_the_name_of_an_example(
    state: Path, monkeypatch: pytest.MonkeyPatch, old: str, verdict: str, why: str
) -> None:
    model = SteppedModel({"prompt": "chat"})
    monkeypatch.setenv("DESK_KEY", "secret")
    new = "    return separator.join(words) or 'untitled'"
    for _ in range(2):  # It is asked once more.
        model.give(f"app.py\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n")
        model.end()
    async with served(model) as endpoint:
        desk = Profile(
            "desk", "local", endpoint.url, key_env="DESK_KEY", edit_format="search-replace"
        )
        settings = replace(Settings(), endpoints=(desk,), endpoint="desk")
        (result,) = [each async for each in run_trial(load_requests(1), settings, None)]
    assert (result.verdict, result.edit_format) == (verdict, "search-replace")
    assert why in result.why


def test_the_last_trial_of_a_model_counts_and_a_damaged_file_counts_as_none(state: Path) -> None:
    keep_trial("a", 30, 10, 2)
    keep_trial("b", 30, 11, 1)
    keep_trial("a", 30, 12, 0)
    kept = kept_trials()
    assert list(kept) == ["b", "a"]
    assert str(kept["a"]).startswith("12 of 30 right, 0 wrong without a flag (")
    assert isinstance(kept["b"], KeptTrial)
    (state / "trials.json").write_text("[")
    assert kept_trials() == {}
