"""Keys as data: every preset is free of clashes, every key shown does something."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from midstream.actions import ACTIONS, BY_ID, Place
from midstream.edits.hunks import HunkState
from midstream.settings import KEY_PRESETS, Settings
from midstream.tui.keymap import (
    PRESETS,
    all_keys,
    bindings,
    clashes,
    key_troubles,
    keys_of,
    left_without,
    own_keys,
    preset_in_words,
    show_key,
)
from midstream.tui.review.status import Moment, hints
from tests.helpers.stage import on_stage


@pytest.mark.parametrize("preset", KEY_PRESETS)
def test_presets_exist_and_do_not_clash(preset: str) -> None:
    assert set(PRESETS[preset]) <= set(BY_ID)
    assert clashes(keys_of(preset)) == []


def test_a_preset_says_which_keys_it_changes() -> None:
    assert preset_in_words("default") == ""
    assert preset_in_words("vim") == "ctrl+f page down, ctrl+b page up, ctrl+d half down"
    assert preset_in_words("git") == "y accept, n reject, a accept all and 4 more"
    for preset in KEY_PRESETS:
        assert len(preset_in_words(preset)) <= 60, "a row at 80 columns"


def test_a_held_back_hunk_offers_the_guard_beside_undo() -> None:
    moment = Moment(hunk=HunkState.HELD, external=True, undoable=True, accepted=True)
    shown = [f"{hint.key} {hint.words}" for hint in hints(moment, keys_of("default"))]
    assert shown[:5] == ["L let me keep it", "r put back", "alt+g guard off", "u undo", "! why"]


def test_every_binding_has_an_id_and_ids_are_unique() -> None:
    made = bindings(*Place)
    ids = [binding.id for binding in made]
    assert None not in ids
    assert len(set(ids)) == len(ids) == len(ACTIONS)


def test_a_clash_of_own_keys_is_a_sentence_that_names_both() -> None:
    (sentence,) = clashes(keys_of("default", {"hunk.accept": "r", "hunk.reject": "r"}))
    assert '"hunk.accept"' in sentence
    assert '"hunk.reject"' in sentence


def test_an_own_key_is_taken_from_the_action_that_had_it() -> None:
    own = {"hunk.accept": "a,j"}
    keys = keys_of("default", own)
    assert (keys["hunk.accept"], keys["row.down"]) == ("a,j", "down")
    assert clashes(keys) == left_without("default", own) == []
    own = {"hunk.reject": "u"}
    keys = keys_of("default", own)
    assert (keys["hunk.reject"], keys["decision.undo"]) == ("u", "")
    assert left_without("default", own) == [
        'The key u is "hunk.reject" now, and "decision.undo" has none; give it another in '
        "[keys.bind]."
    ]
    assert left_without("default", {**own, "decision.undo": "ctrl+y"}) == []
    assert left_without("default", {"theme": ""}) == []


def test_the_example_of_the_tour_works_as_it_stands() -> None:
    blocks = (Path(__file__).parents[2] / "docs" / "tour.md").read_text().split("```toml\n")[1:]
    (keys,) = [t["keys"] for t in (tomllib.loads(b.split("```")[0]) for b in blocks) if "keys" in t]
    assert keys["bind"]
    assert key_troubles(keys["preset"], keys["bind"].items()) == []


def test_keys_are_written_as_people_do() -> None:
    assert show_key("question_mark") == "?"
    assert show_key("ctrl+c") == "ctrl+c"
    assert all_keys(keys_of("default"), "row.down") == "j down"


@pytest.mark.parametrize("composing", [True, False])
@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("hunk", [None, "settled", "accepted"])
def test_hints_are_actions_of_their_place(composing: bool, running: bool, hunk: str | None) -> None:
    moment = Moment(composing=composing, running=running, hunk=hunk, undecided=2, file=True)  # type: ignore[arg-type]
    shown = hints(moment, keys_of("default"))
    assert shown[-1].words == "keys"
    by_call = {action.call: action for action in ACTIONS}
    for hint in shown:
        place = by_call[hint.call].place
        assert (
            place is not Place.REVIEW or not composing or hint.call == "palette" or "f1" in hint.key
        )


async def test_the_git_preset_decides_with_y_and_n(project: Path) -> None:
    async with on_stage(project, settings=Settings(journal=False, keys="git")) as stage:
        await stage.open("pkg/things.py")
        await stage.instruct("rename total in count")
        stage.model.give(
            "def count(items):\n    sum = 0\n    for item in items:\n        if item:\n"
            "            sum += 1\n    return sum\n"
        )
        stage.model.give(None)
        await stage.until(
            lambda: stage.session.status.state == "ready" and stage.session.turns.last, "end"
        )
        assert stage.keys[:2] == ["y accept", "n reject"]
        first = stage.pane.undecided_hunk
        assert first is not None
        await stage.press("y")
        await stage.until(lambda: first.state == "accepted", "accepted")
        second = stage.pane.undecided_hunk
        assert second is not None
        await stage.press("n")
        await stage.until(lambda: second.state == "rejected", "rejected")


def test_own_keys_are_read_as_people_write_them() -> None:
    pairs = [
        ("hunk.accept", "a, y"),
        ("help", "?,ctrl+h"),
        ("page.down", "pgdn,]"),
        ("theme", ""),
        ("hunk.edit", "+"),
    ]
    keys, sentences = own_keys(pairs)
    assert sentences == []
    assert keys == {
        "hunk.accept": "a,y",
        "help": "question_mark,ctrl+h",
        "page.down": "pagedown,right_square_bracket",
        "theme": "",
        "hunk.edit": "plus",
    }
    assert clashes(keys_of("default", {"theme": "", "layout": ""})) == []


@pytest.mark.parametrize(
    ("action", "keys", "sentence"),
    [
        (
            "hunk.acept",
            "a",
            '[keys.bind] names no action "hunk.acept"; did you mean "hunk.accept"?',
        ),
        ("zzzz", "a", '[keys.bind] names no action "zzzz"; F1 lists the actions.'),
        ("hunk.accept", "a,enterr", 'there is no key "enterr"'),
        ("hunk.accept", "crtl+a", 'there is no key "crtl+a"'),
        ("hunk.accept", "ctrl+", 'there is no key "ctrl+"'),
    ],
)
def test_a_wrong_key_is_a_sentence(action: str, keys: str, sentence: str) -> None:
    used, (said,) = own_keys([(action, keys)])
    assert used == {}
    assert sentence in said


async def test_own_keys_act_and_mistakes_are_said(project: Path) -> None:
    binds = (("layout", "ctrl+y,]"), ("theme", ""), ("hunk.acept", "z"), ("copy", "j"))
    settings = Settings(journal=False, key_binds=binds)
    async with on_stage(project, settings=settings) as stage:
        await stage.until(lambda: stage.notice, "notice")
        assert 'no action "hunk.acept"' in stage.notice
        assert '"layout" now, and "hunk.next_undecided" has none' in stage.notice
        assert stage.app.keys["row.down"] == "down"
        await stage.open("pkg/things.py")
        await stage.press("t")
        assert stage.pane.layout_choice == "auto"
        await stage.press("ctrl+y")
        assert stage.pane.layout_choice == "split"
        await stage.press("T")
        assert stage.app.screen is stage.screen
