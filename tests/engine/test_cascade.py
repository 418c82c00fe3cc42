"""Two models behind one name: which answers, what is shown, stops, redirects, reading ahead.

The first model is the shipped one, the second has random weights and writes edit scripts; their
thresholds are set so that each route is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnx")

from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.cascade import (
    Cascade,
    CascadeAnswer,
    HiddenAnswer,
    first_folder,
    load_served_model,
)
from midstream.engine.folder import Calibration, Drafting, ModelFolderError, Takeover, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message, Usage
from midstream.errors import UserError
from midstream.resources import models_dir
from tests.helpers.cascades import Loaded
from tests.helpers.scripts import REGION, asked, folder_of

BROOK = models_dir() / "brook-4m"
RENAME = asked("rename `result` to `amount`")
SURE, NEVER = 0.0, 1.01
"""Thresholds that every answer of the first model reaches, and none."""
LONG = "x\n" * 66

pytestmark = pytest.mark.skipif(not BROOK.is_dir(), reason="no model has been exported yet")


Make = Callable[..., Cascade]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("script"))


@pytest.fixture(scope="module")
def first() -> Iterator[OnnxModel]:
    model = OnnxModel(read_folder(BROOK), threads=1)
    yield model
    model.close()


def second_of(folder: Path, chance: float | None) -> OnnxModel:
    """The larger model; with a calibration, each of its answers has one of two probabilities."""
    described = read_folder(folder)
    if chance is not None:
        calibration = Calibration(0.5, 5.0 if chance > 0.5 else -5.0, {"opening": 0.0})
        described = replace(described, confidence=calibration)
    return OnnxModel(described, threads=1)


@pytest.fixture(scope="module")
def make(folder: Path, first: OnnxModel) -> Iterator[Make]:
    """Makes pairs; `chance` is how sure the larger model is, None for no calibration."""
    models = {chance: second_of(folder, chance) for chance in (None, 0.01, 0.99)}

    def pair(
        threshold: float,
        compare: float | None = None,
        *,
        chance: float | None = 0.01,
        at_once: bool = True,
        hold: float = 0.0,
        decline: float = 0.0,
    ) -> Cascade:
        second = models[chance]
        for model in (first, second):
            model.cache.clear()
        least = threshold if compare is None else compare
        takeover = Takeover("brook-4m", threshold, least, hold, decline)
        return Cascade(first, Loaded(second, at_once=at_once), takeover)

    yield pair
    for model in models.values():
        model.close()


def larger(cascade: Cascade) -> OnnxModel:
    return cascade.second.loaded.result()


def text_of(model: OnnxModel | Cascade, request: GenerateRequest) -> str:
    return "".join(piece.text for piece in model.start(request))


def answered(cascade: Cascade, request: GenerateRequest) -> tuple[str, Usage]:
    generation = cascade.start(request)
    text = "".join(piece.text for piece in generation)
    assert generation.finish_reason in (FinishReason.STOP, FinishReason.LENGTH)
    return text, generation.usage


@pytest.fixture(scope="module")
def modest(first: OnnxModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cascade]:
    """A pair whose larger model declines some requests."""
    folder = folder_of(tmp_path_factory.mktemp("modest"), louder="?")
    second = second_of(folder, 0.01)
    yield Cascade(first, Loaded(second), Takeover("brook-4m", NEVER, NEVER))
    second.close()


BEYOND = (
    "write a compiler",
    "port this to rust",
    "explain this",
    "why does it crash",
    "use a database",
    "translate to french",
    "hello",
    "optimise",
)
"""What the first model gives up on."""
RENAMES = tuple(f"rename `result` to `amount_{number}`" for number in range(8))


def declined(cascade: Cascade, instructions: Sequence[str]) -> GenerateRequest:
    """A request that the larger model declines."""
    for instruction in instructions:
        request = asked(instruction)
        generation = larger(cascade).start(request)
        list(generation)
        if generation.usage.gave_up:
            return request
    pytest.fail("the random model never declines; choose another seed")


def test_a_sure_first_answer_is_shown_and_the_larger_model_does_not_run(make: Make) -> None:
    cascade = make(SURE)
    ran = larger(cascade).decoder.runtime_s
    text, usage = answered(cascade, RENAME)
    assert text == text_of(cascade.first, RENAME) == REGION.replace("result", "amount")
    assert usage.answered_by == "brook-4m"
    assert usage.threshold == cascade.flag
    assert usage.confidence is not None
    assert not usage.hidden_s
    assert larger(cascade).decoder.runtime_s == ran


def test_an_unsure_first_answer_is_not_shown_and_the_larger_model_streams(make: Make) -> None:
    cascade = make(NEVER, chance=0.99)
    whole = text_of(larger(cascade), RENAME)
    generation = cascade.start(RENAME)
    pieces = [piece.text for piece in generation]
    assert "".join(pieces) == whole
    usage = generation.usage
    assert usage.answered_by == "tiny-script"
    assert usage.threshold is None, "the facts of the pair have the larger model's"
    assert usage.hidden_s > 0
    assert usage.confidence == pytest.approx(0.9933, abs=1e-3)


def test_a_threshold_between_two_answers_separates_them(make: Make, first: OnnxModel) -> None:
    chances: dict[GenerateRequest, float] = {}
    for request in (RENAME, asked("newest first"), asked("add a docstring")):
        generation = first.answer(request)
        list(generation)
        assert generation.usage.confidence is not None
        chances[request] = -1 if generation.usage.gave_up else generation.usage.confidence
    high, low = max(chances, key=chances.__getitem__), min(chances, key=chances.__getitem__)
    cascade = make((max(chances.values()) + max(0, min(chances.values()))) / 2)
    assert answered(cascade, high)[1].answered_by == "brook-4m"
    assert answered(cascade, low)[1].answered_by == "tiny-script"


def test_what_the_larger_model_declines_the_first_one_answers_flagged(
    modest: Cascade, first: OnnxModel
) -> None:
    request = declined(modest, RENAMES)
    text, usage = answered(modest, request)
    assert text == text_of(first, request) != REGION
    assert usage.answered_by == "brook-4m"
    assert not usage.gave_up
    assert usage.confidence is not None
    assert usage.threshold is not None
    assert usage.confidence < usage.threshold
    assert usage.hidden_s > 0


def test_what_both_decline_is_declined(modest: Cascade) -> None:
    request = declined(modest, BEYOND)
    text, usage = answered(modest, request)
    assert text == REGION
    assert usage.gave_up
    assert usage.answered_by == "tiny-script"


def test_an_answer_of_the_larger_model_is_compared_where_the_first_is_nearly_sure(
    make: Make,
) -> None:
    for chance, winner in ((0.01, "brook-4m"), (0.99, "tiny-script")):
        cascade = make(NEVER, SURE, chance=chance)
        _, usage = answered(cascade, RENAME)
        assert usage.answered_by == winner
        assert usage.hidden_s > 0
    uncalibrated = make(NEVER, SURE, chance=None)
    assert answered(uncalibrated, RENAME)[1].answered_by == "tiny-script"


ALWAYS = 1.01
"""A probability that every answer is below."""


def test_an_answer_that_begins_doubtfully_is_shown_when_it_is_complete(make: Make) -> None:
    cascade = make(NEVER, chance=0.99, hold=ALWAYS, decline=0.5)
    whole = text_of(larger(cascade), RENAME)
    generation = cascade.start(RENAME)
    first = next(pieces := iter(generation)).text
    assert generation.usage.confidence == pytest.approx(0.9933, abs=1e-3), "it is complete"
    assert first + "".join(piece.text for piece in pieces) == whole
    assert generation.usage.answered_by == "tiny-script"


def test_of_two_held_back_answers_the_likelier_one_is_shown(make: Make) -> None:
    cascade = make(NEVER, chance=0.01, hold=ALWAYS, decline=0.5)
    text, usage = answered(cascade, RENAME)
    assert text == text_of(cascade.first, RENAME)
    assert usage.answered_by == "brook-4m"
    assert not usage.gave_up


@pytest.mark.parametrize("held", [True, False])
def test_a_request_is_declined_where_a_held_back_answer_is_hardly_ever_right(
    first: OnnxModel, held: bool
) -> None:
    # The random model changes nothing, so the first one's weights take both parts.
    second = second_of(BROOK, 0.01)
    takeover = Takeover("brook-4m", NEVER, NEVER, hold=ALWAYS if held else 0.0, decline=ALWAYS)
    cascade = Cascade(first, Loaded(second), takeover)
    text, usage = answered(cascade, RENAME)
    assert text == (REGION if held else REGION.replace("result", "amount"))
    assert usage.gave_up == held
    again = answered(cascade, redirected(RENAME, KEPT, "call it `total`"))[1]
    assert not again.gave_up, "it goes on from lines that are kept"
    second.close()


def test_of_two_answers_the_likelier_one_is_better(make: Make) -> None:
    cascade = make(NEVER)

    def answer(chance: float, finish: FinishReason = FinishReason.STOP) -> HiddenAnswer:
        return HiddenAnswer((), Usage(confidence=chance), finish)

    assert cascade.prefers_first(answer(0.4), answer(0.3))
    assert not cascade.prefers_first(answer(0.3), answer(0.4))
    assert not cascade.prefers_first(answer(0.9), answer(0.6)), "sure enough by its own threshold"
    assert cascade.prefers_first(answer(0.1), answer(0.9, FinishReason.LENGTH))


def test_regions_and_languages_of_the_larger_model_go_to_it_at_once(make: Make) -> None:
    cascade = make(SURE)
    _, usage = answered(cascade, asked("start at one", LONG))
    assert usage.answered_by == "tiny-script"
    text = render_request(RegionRequest("rename `a` to `b`", "a = 1;\n", language="javascript"))
    _, usage = answered(cascade, GenerateRequest((Message("user", text),)))
    assert usage.answered_by == "tiny-script"
    assert answered(cascade, RENAME)[1].answered_by == "brook-4m"


def test_what_neither_takes_is_the_larger_models_sentence(make: Make) -> None:
    with pytest.raises(UserError, match="region"):
        list(make(SURE).start(GenerateRequest((Message("user", "write me a poem"),))))
    with pytest.raises(UserError, match="prompt"):
        list(make(SURE).start(asked("start at one", LONG * 4)))


def redirected(request: GenerateRequest, kept: str, said: str) -> GenerateRequest:
    more = (Message("assistant", kept), Message("user", render_follow_up(said)))
    return replace(request, messages=(*request.messages, *more))


KEPT = "".join(f"{line}\n" for line in REGION.split("\n")[:2])


@pytest.mark.parametrize(("threshold", "writer"), [(SURE, "brook-4m"), (NEVER, "tiny-script")])
def test_a_redirect_goes_to_the_model_that_wrote(
    make: Make, threshold: float, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cascade = make(threshold, chance=0.99)
    assert answered(cascade, RENAME)[1].answered_by == writer
    # Whatever the first model would say now.
    monkeypatch.setattr(cascade, "threshold", SURE)
    request = redirected(RENAME, KEPT, "call it `total`")
    text, usage = answered(cascade, request)
    owner = cascade.first if writer == "brook-4m" else larger(cascade)
    assert usage.answered_by == writer
    assert text == text_of(owner, request)
    again = redirected(RENAME, "", "rename `item` to `entry`")
    assert answered(cascade, again)[1].answered_by == "brook-4m", "nothing was kept"


@pytest.mark.parametrize("threshold", [SURE, NEVER])
@pytest.mark.parametrize("compare", [None, SURE])
def test_drafted_answers_are_the_undrafted_ones(
    make: Make, threshold: float, compare: float | None
) -> None:
    cascade = make(threshold, compare)
    for request in (RENAME, asked("newest first"), replace(RENAME, temperature=0.7, seed=5)):
        found: set[tuple[str, str, float | None]] = set()
        for drafting in (None, Drafting(), Drafting(3)):
            cascade.first.drafting = larger(cascade).drafting = drafting
            for model in (cascade.first, larger(cascade)):
                model.cache.clear()
            text, usage = answered(cascade, request)
            found.add((text, usage.answered_by, usage.confidence))
        assert len(found) == 1 if not request.seed else len({text for text, _, _ in found}) <= 3


def test_the_same_seed_gives_the_same_answer(make: Make) -> None:
    cascade = make(NEVER)
    request = replace(RENAME, temperature=0.9, seed=3)
    assert answered(cascade, request)[0] == answered(cascade, request)[0]


# Reading ahead


def reading(request: GenerateRequest) -> GenerateRequest:
    return replace(request, generate=False)


@pytest.mark.parametrize("threshold", [SURE, NEVER])
def test_what_was_read_ahead_is_ready_and_the_same(make: Make, threshold: float) -> None:
    cascade = make(threshold)
    whole, plain = answered(cascade, RENAME)
    for model in (cascade.first, larger(cascade)):
        model.cache.clear()
    ahead = cascade.start(reading(RENAME))
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOP
    ran = cascade.first.decoder.runtime_s
    text, usage = answered(cascade, RENAME)
    assert cascade.first.decoder.runtime_s == ran, "the first model has answered already"
    assert (text, usage.confidence) == (whole, plain.confidence)
    assert usage.cached_tokens == usage.input_tokens, "the larger one has begun already"
    assert not usage.prefill_s


def test_a_region_without_words_is_read_by_the_larger_model_alone(make: Make) -> None:
    cascade = make(SURE)
    ran = cascade.first.decoder.runtime_s
    assert list(cascade.start(reading(asked("")))) == []
    assert cascade.first.decoder.runtime_s == ran
    generation = larger(cascade).start(RENAME)
    list(generation)
    assert generation.usage.cached_tokens > 20


def test_a_reading_that_is_stopped_leaves_nothing_wrong(make: Make) -> None:
    cascade = make(NEVER)
    whole = text_of(cascade, RENAME)
    ahead = cascade.start(reading(RENAME))
    ahead.stop()
    assert list(ahead) == []
    assert ahead.finish_reason is FinishReason.STOPPED
    assert text_of(cascade, RENAME) == whole


def test_what_was_written_ahead_answers_its_own_request_only(make: Make) -> None:
    cascade = make(SURE)
    other = asked("rename `item` to `entry`")
    assert list(cascade.start(reading(RENAME))) == []
    assert text_of(cascade, other) == text_of(cascade.first, other)
    assert text_of(cascade, RENAME) == text_of(cascade.first, RENAME)


# Stops


@given(
    request=st.sampled_from([RENAME, asked("newest first"), asked("use sum", LONG)]),
    threshold=st.sampled_from([SURE, NEVER]),
    compare=st.sampled_from([None, SURE]),
    hold=st.sampled_from([0.0, ALWAYS]),
    after=st.integers(0, 12),
    ahead=st.booleans(),
    delay=st.sampled_from([None, 0.0, 0.002, 0.02]),
)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_wherever_it_is_stopped_the_text_is_the_beginning_of_one_models_answer(
    make: Make,
    request: GenerateRequest,
    threshold: float,
    compare: float | None,
    hold: float,
    after: int,
    ahead: bool,
    delay: float | None,
) -> None:
    cascade = make(threshold, compare, hold=hold)
    wholes = [text_of(larger(cascade), request)]
    if request.messages[0].text.count("\n") < 64:
        wholes.append(text_of(cascade.first, request))
    if ahead:
        list(cascade.start(reading(request)))
    generation = cascade.start(request)
    if delay is not None:
        threading.Timer(delay, generation.stop).start()
    text = ""
    for number, piece in enumerate(generation):
        text += piece.text
        if number == after:
            generation.stop()
    assert any(whole.startswith(text) for whole in wholes)
    assert generation.finish_reason is not None
    if generation.finish_reason is FinishReason.STOP:
        assert text in wholes
    assert text_of(cascade, request) in wholes, "a stop spoils no later answer"


def test_a_stop_in_the_hidden_phase_shows_nothing(make: Make) -> None:
    cascade = make(SURE)
    generation = cascade.start(RENAME)
    generation.stop()
    assert list(generation) == []
    assert generation.finish_reason is FinishReason.STOPPED
    assert not generation.usage.answered_by


# Loading


def test_an_answer_waits_for_the_larger_model_and_says_so(make: Make) -> None:
    cascade = make(NEVER, at_once=False)
    ready = make(NEVER)
    pieces = iter(generation := cascade.start(RENAME))
    assert next(pieces).text == ""
    assert generation.usage.waits_for == "tiny-script"
    assert list(cascade.start(reading(asked("use sum")))) == [], "reading ahead does not wait"
    cascade.second.loaded.set_result(larger(ready))
    assert "".join(piece.text for piece in pieces) == text_of(larger(ready), RENAME)
    assert not generation.usage.waits_for
    sure = make(SURE, at_once=False)
    assert answered(sure, RENAME)[1].answered_by == "brook-4m", "it has nothing to wait for"


def test_a_stop_ends_the_wait(make: Make) -> None:
    generation = make(NEVER, at_once=False).start(RENAME)
    pieces = iter(generation)
    next(pieces)
    threading.Timer(0.01, generation.stop).start()
    assert list(pieces) == []
    assert generation.finish_reason is FinishReason.STOPPED


def test_without_the_larger_model_the_first_one_answers_what_it_can(make: Make) -> None:
    cascade = make(NEVER, at_once=False)
    cascade.second.loaded.set_exception(ModelFolderError("the file is damaged"))
    text, usage = answered(cascade, RENAME)
    assert text == text_of(cascade.first, RENAME)
    assert usage.answered_by == "brook-4m"
    assert usage.trouble == "the file is damaged"
    with pytest.raises(UserError, match="damaged"):
        list(cascade.start(asked("start at one", LONG)))
    cascade.second.close()


# Folders


def taking_over(folder: Path, place: Path, first: str = "brook-4m", more: str = "") -> Path:
    """A copy of a model folder that names another model."""
    place.mkdir(parents=True)
    for file in folder.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    card = place / "midstream.toml"
    table = f'\n[takeover]\nfirst = "{first}"\nthreshold = 0.8\n{more}'
    card.write_text(card.read_text() + table)
    return place


def test_a_folder_that_names_another_is_served_with_it(folder: Path, tmp_path: Path) -> None:
    chosen = taking_over(folder, tmp_path / "large")
    found = first_folder(read_folder(chosen))
    assert found is not None
    assert found.path == BROOK
    model = load_served_model(chosen, threads=1)
    assert isinstance(model, Cascade)
    assert model.name == "tiny-script"
    assert model.facts["first_model"] == "brook-4m"
    assert model.facts["max_region_lines"] == read_folder(chosen).facts["max_region_lines"]
    assert isinstance(model.start(RENAME), CascadeAnswer)
    assert text_of(model, RENAME)
    model.close()


def test_a_folder_beside_it_comes_first(folder: Path, tmp_path: Path) -> None:
    chosen = taking_over(folder, tmp_path / "large")
    (tmp_path / "brook-4m").symlink_to(BROOK)
    found = first_folder(read_folder(chosen))
    assert found is not None
    assert found.path == tmp_path / "brook-4m"


@pytest.mark.parametrize("more", ["", "compare = 0.5\n"])
def test_a_model_whose_first_one_is_missing_works_alone(
    folder: Path, tmp_path: Path, more: str
) -> None:
    for chosen in (folder, taking_over(folder, tmp_path / "large", "no-such-model", more)):
        model = load_served_model(chosen, threads=1)
        assert isinstance(model, OnnxModel)
        model.close()


def test_a_folder_says_when_answers_are_held_back_and_declined(
    folder: Path, tmp_path: Path
) -> None:
    more = "compare = 0.7\nhold = 0.9\ndecline = 0.1\n"
    found = read_folder(taking_over(folder, tmp_path / "large", more=more)).takeover
    assert found == Takeover("brook-4m", 0.8, 0.7, hold=0.9, decline=0.1)


@pytest.mark.parametrize("more", ["compare = 'x'\n", "threshold = true\n", "hold = 'x'\n"])
def test_a_takeover_without_numbers_is_refused(folder: Path, tmp_path: Path, more: str) -> None:
    chosen = taking_over(folder, tmp_path / "large")
    card = chosen / "midstream.toml"
    text = card.read_text()
    if more.startswith("threshold"):
        text = text.replace("threshold = 0.8\n", "")
    card.write_text(text + more)
    with pytest.raises(ModelFolderError, match=r"\[takeover\]"):
        read_folder(chosen)
    card.write_text(text.replace('"brook-4m"', '"../brook-4m"'))
    with pytest.raises(ModelFolderError, match=r"\[takeover\]"):
        read_folder(chosen)
