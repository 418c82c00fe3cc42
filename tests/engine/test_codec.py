"""The edit codec's laws: what is encoded comes back, in any pieces, for any text."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from midstream.edits.request import Carried, carried
from midstream.engine.answer import StreamDecoder
from midstream.engine.codec import EditCodec, RegionTooLong
from midstream.engine.edit_request import EditRequest
from midstream.engine.layout import align, cut_span, without_span
from midstream.engine.vocabulary import CodecLimits, Vocabulary
from tests.helpers.property import examples

MODELS = Path(__file__).parents[2] / "models"
FOLDER = next(
    path.parent
    for path in sorted(MODELS.glob("*/midstream.toml"))
    if "edit-codec" in path.read_text()
)

REGION = '''    def load(self, path, encoding="utf-8"):
        """Load the settings from disk."""
        if not path:
            return None
        text = read_file_contents(path, encoding)
        return self.parse_settings(text)
'''


@pytest.fixture(scope="module")
def codec() -> EditCodec:
    return EditCodec.load(FOLDER)


def decode(codec: EditCodec, request: EditRequest, ids: list[int]) -> str:
    decoder = codec.encode(request).decoder
    return "".join(decoder.feed(token) for token in ids) + decoder.finish()


def names(codec: EditCodec, ids: list[int]) -> str:
    return " ".join(codec.vocab.special_name(i) or codec.vocab.bytes_of(i).decode() for i in ids)


line = st.one_of(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(REGION.split("\n")),
    st.sampled_from(
        [
            "",
            " ",
            "    ",
            "\t",
            "\f",
            "        x = 1",
            "  odd()",
            "\ttab",
            "<L1>",
            "<i1> <new>",
            "é = 'ü'",
        ]
    ),
)
lines = st.lists(line, max_size=12).map(lambda rows: "".join(row + "\n" for row in rows))
instruction = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "rename path to file_path",
            "replace `read_file_contents(path, encoding)` with `x`",
            'say "Load the settings"',
        ]
    ),
)


@examples(120)
@given(instruction, lines, lines)
@example("", "\n\t0\n", "\n\n")
def test_any_rewrite_comes_back_exactly(
    codec: EditCodec, words: str, region: str, target: str
) -> None:
    request = EditRequest(words, region)
    prompt, ids = codec.encode_target(request, target)
    assert prompt == codec.encode(request).prompt_ids
    assert decode(codec, request, ids) == target


@examples(80)
@given(instruction, lines, lines, lines)
def test_kept_lines_and_the_rest_make_the_whole(
    codec: EditCodec, words: str, region: str, kept: str, rest: str
) -> None:
    request = EditRequest(words, region, kept=kept)
    prompt, ids = codec.encode_target(request, kept + rest)
    assert prompt == codec.encode(request).prompt_ids
    assert decode(codec, request, ids) == rest


@examples(50)
@given(lines)
def test_the_draft_means_no_change(codec: EditCodec, region: str) -> None:
    request = EditRequest("leave it as it is", region)
    encoded = codec.encode(request)
    assert encoded.draft_ids[-1] in encoded.stop_ids
    assert decode(codec, request, encoded.draft_ids) == region


@examples(50)
@given(lines, st.data())
def test_the_decoder_takes_any_token_at_any_time(
    codec: EditCodec, region: str, data: st.DataObject
) -> None:
    tokens = st.integers(0, codec.vocab.size - 1) | st.integers(0, codec.vocab.first_text_id - 1)
    decoder = codec.encode(EditRequest("rename path to x", region)).decoder
    for token in data.draw(st.lists(tokens, max_size=30)):
        assert isinstance(decoder.feed(token), str)
    decoder.finish()


def test_an_unchanged_line_costs_one_token_and_a_new_name_another(codec: EditCodec) -> None:
    request = EditRequest("rename path to settings_path", REGION)
    target = REGION.replace("path", "settings_path")
    _, ids = codec.encode_target(request, target)
    text = names(codec, ids)
    assert text.startswith("<L1> ")
    assert "<L2> <L3>" in text
    assert "<L4> <L5>" in text
    assert "settings" not in text


def test_a_changed_line_names_only_what_changes(codec: EditCodec) -> None:
    region = "def f(a, limit_value):\n    return a + limit_value * limit_value\n"
    renamed = EditRequest("rename `limit_value` to `upper_bound`", region)
    target = region.replace("limit_value", "upper_bound")
    _, ids = codec.encode_target(renamed, target)
    assert names(codec, ids) == "<L1> <swap> <i1> <i7> <L2> <swap> <i1> <i7> <L3>"
    assert decode(codec, renamed, ids) == target
    added = EditRequest("add a parameter `upper_bound` with default `None`", region)
    target = region.replace("limit_value):", "limit_value, upper_bound=None):")
    _, ids = codec.encode_target(added, target)
    assert names(codec, ids).startswith("<L1> <swap> ): ")
    assert decode(codec, added, ids) == target


def test_a_swap_leaves_the_keyword_of_a_call_alone(codec: EditCodec) -> None:
    region = "call(limit_value=limit_value)\n"
    request = EditRequest("rename `limit_value` to `upper_bound`", region)
    target = "call(limit_value=upper_bound)\n"
    _, ids = codec.encode_target(request, target)
    assert names(codec, ids) == "<L1> <swap> <i1> <i7> <L2>"
    assert decode(codec, request, ids) == target
    both = "call(upper_bound=upper_bound)\n"
    _, ids = codec.encode_target(request, both)
    assert "<swap>" not in names(codec, ids)
    assert decode(codec, request, ids) == both
    only = EditRequest("rename `limit_value` to `upper_bound`", "def f(limit_value=3):\n")
    _, ids = codec.encode_target(only, "def f(upper_bound=3):\n")
    assert names(codec, ids) == "<L1> <swap> <i1> <i7> <L2>"


@examples(300)
@given(st.lists(st.integers(0, 5), max_size=9), st.lists(st.integers(0, 5), max_size=9))
def test_a_cut_puts_the_other_line_in_place_of_the_one(
    source: list[int], target: list[int]
) -> None:
    cut = cut_span(source, target)
    if cut:
        assert without_span(source, cut[0], cut[1], cut[2:]) == target


def test_a_line_that_no_swap_changes_is_cut(codec: EditCodec) -> None:
    region = "def load(path=None, mode=None, size=None):\n    return path\n"
    target = "def load(path=None, size=None):\n    return path\n"
    request = EditRequest("remove the parameter mode", region)
    _, ids = codec.encode_target(request, target)
    assert "<cut>" in names(codec, ids)
    assert len(ids) <= 9
    assert decode(codec, request, ids) == target


@pytest.fixture(scope="module")
def appending() -> EditCodec:
    from tokenizers import Tokenizer

    return EditCodec(
        Vocabulary(Tokenizer.from_file(str(FOLDER / "tokenizer.json")), CodecLimits(appended=1))
    )


def test_a_redirect_that_asks_for_more_keeps_what_was_asked(codec: EditCodec) -> None:
    kept = "".join(REGION.splitlines(keepends=True)[:1])

    def prompt(newest: str, *earlier: str) -> list[int]:
        return codec.encode(EditRequest(newest, REGION, kept=kept, earlier=earlier)).prompt_ids

    both = prompt("rename path to name and make it async")
    assert prompt("also make it async", "rename path to name") == both
    assert prompt("make it async too", "rename path to name.") == both
    assert prompt("make it async", "rename path to name") == prompt("make it async")
    # Of three that are meant the original and the newest are carried.
    assert prompt("also make it async", "rename path to name", "also drop the default") == both
    assert prompt("also make it async", "drop the default", "no, rename path to name") == prompt(
        "no, rename path to name and make it async"
    )


def test_it_is_known_what_a_redirect_leaves_out() -> None:
    assert carried(["a", "also b", "also c"]) == Carried("a and c", ("b",))
    assert carried(["a.", "also b"]) == Carried("a and b")
    assert carried(["a", "also b", "no, c"]) == Carried("no, c")
    assert carried(["a", "b", "also c", "also d", "also e"]) == Carried("b and e", ("c", "d"))


def test_a_redirect_is_appended_to_what_is_in_the_cache(appending: EditCodec) -> None:
    codec = appending
    first = EditRequest("rename the parameter path to file_name", REGION)
    target = REGION.replace("path", "file_name")
    prompt, answer = codec.encode_target(first, target)
    kept = "".join(target.splitlines(keepends=True)[:3])
    second = EditRequest(
        "also return `fallback_value` instead of None",
        REGION,
        kept=kept,
        earlier=(first.instruction,),
    )
    encoded = codec.encode(second)
    cached = len(prompt) + 7
    assert encoded.prompt_ids[:cached] == [*prompt, *answer[:7]]
    assert len(encoded.prompt_ids) - cached < 20
    wanted = target.replace("return None", "return fallback_value")
    _, rest = codec.encode_target(second, wanted)
    text = "".join(encoded.decoder.feed(token) for token in rest) + encoded.decoder.finish()
    assert kept + text == wanted


@examples(120)
@given(instruction, instruction, lines, lines, lines)
def test_a_redirected_rewrite_comes_back_exactly(
    appending: EditCodec, first: str, second: str, region: str, kept: str, rest: str
) -> None:
    codec = appending
    request = EditRequest(second, region, kept=kept, earlier=(first,))
    prompt, ids = codec.encode_target(request, kept + rest)
    assert codec.encode(request).prompt_ids == prompt
    assert decode(codec, request, ids) == rest


def test_giving_up_leaves_the_rest_as_it_was(codec: EditCodec) -> None:
    request = EditRequest("write tests for it", REGION)
    _, ids = codec.encode_target(request, None)
    decoder = codec.encode(request).decoder
    assert isinstance(decoder, StreamDecoder)
    assert "".join(decoder.feed(token) for token in ids) + decoder.finish() == REGION
    assert decoder.gave_up
    assert set(ids) <= codec.encode(request).stop_ids


def test_text_is_given_out_as_soon_as_it_is_certain(codec: EditCodec) -> None:
    request = EditRequest("leave it", REGION)
    encoded = codec.encode(request)
    first = REGION.split("\n")[0] + "\n"
    assert encoded.decoder.feed(encoded.draft_ids[0]) == ""
    assert encoded.decoder.feed(encoded.draft_ids[1]) == first


def test_an_interrupted_answer_gives_out_nothing_uncertain(codec: EditCodec) -> None:
    encoded = codec.encode(EditRequest("leave it", REGION))
    text = encoded.decoder.feed(encoded.draft_ids[0]) + encoded.decoder.feed(encoded.draft_ids[1])
    assert text + encoded.decoder.finish() == REGION.split("\n")[0] + "\n"


def test_deeper_and_shallower_lines_cost_two_tokens(codec: EditCodec) -> None:
    region = "def f():\n    first_statement(1)\n    second_statement(2)\n"
    deeper = "def f():\n    with lock:\n        first_statement(1)\n        second_statement(2)\n"
    _, ids = codec.encode_target(EditRequest("wrap it in with lock", region), deeper)
    assert names(codec, ids).endswith("<L2> <ind> <L3> <ind> <L4>")
    request = EditRequest("unwrap", deeper)
    _, ids = codec.encode_target(request, region)
    assert names(codec, ids) == "<L1> <L3> <ded> <L4> <ded> <L5>"
    assert decode(codec, request, ids) == region


def test_special_tokens_in_source_stay_text(codec: EditCodec) -> None:
    request = EditRequest("say <i1>", "x = '<i1> <end> <L2>'\n")
    encoded = codec.encode(request)
    prompt = names(codec, encoded.prompt_ids)
    assert prompt.count("<L2>") == 1, prompt
    assert "<end>" not in prompt.split(" ")


def test_training_numbers_may_differ_but_mean_the_same(codec: EditCodec) -> None:
    request = EditRequest("rename path to settings_path", REGION)
    target = REGION.replace("path", "settings_path")
    plain = codec.encode_target(request, target)
    shuffled = [codec.encode_target(request, target, shuffle=Random(seed)) for seed in range(8)]
    assert any(pair != plain for pair in shuffled)
    assert {len(prompt) + len(ids) for prompt, ids in shuffled} == {len(plain[0]) + len(plain[1])}


def test_too_many_lines_are_refused_with_numbers(codec: EditCodec) -> None:
    limit = CodecLimits().lines
    codec.encode(EditRequest("x", "pass\n" * limit))
    with pytest.raises(RegionTooLong, match=rf"{limit + 1} lines.*{limit}"):
        codec.encode(EditRequest("x", "pass\n" * (limit + 1)))


def test_kept_must_begin_the_target(codec: EditCodec) -> None:
    with pytest.raises(ValueError, match="prefix"):
        codec.encode_target(EditRequest("x", "a\n", kept="b\n"), "a\n")


def test_the_draft_goes_on_after_the_kept_lines(codec: EditCodec) -> None:
    rows = REGION.splitlines(keepends=True)
    kept = rows[0].replace("path", "where") + rows[1]
    request = EditRequest("rename path to where", REGION, kept=kept)
    assert decode(codec, request, codec.encode(request).draft_ids) == "".join(rows[2:])


@examples(80)
@given(st.lists(line, max_size=8), st.lists(line, max_size=8), st.booleans())
def test_alignment_keeps_the_order_and_every_target_line(
    source: list[str], target: list[str], open_end: bool
) -> None:
    pairs = align(source, target, open_end=open_end)
    assert [text for _, text in pairs] == target
    used = [number for number, _ in pairs if number is not None]
    assert used == sorted(set(used))
    assert all(0 <= number < len(source) for number in used)


def test_names_that_the_region_does_not_have_are_numbered_from_the_end(codec: EditCodec) -> None:
    region = "def f(limit_value):\n    return limit_value\n"
    there = EditRequest("rename limit_value to upper_bound because http_server needs it", region)
    words = names(codec, codec.encode(there).prompt_ids).split("<src>")[0]
    assert "rename <i1>" in words
    assert "to <i7>" in words
    assert "<i6>" in words
    assert "<i2>" not in words


def test_prose_takes_no_slots_and_leaves_some_for_the_names_that_count(codec: EditCodec) -> None:
    region = "def f(limit_value):\n    return limit_value\n"
    asked = (
        "The zebra and the giraffe, the walrus, the ocelot and the badger in the menagerie "
        "are confused by it, so rename limit_value to upper_bound."
    )
    encoded = codec.encode(EditRequest(asked, region))
    _, ids = codec.encode_target(
        EditRequest(asked, region), region.replace("limit_value", "upper_bound")
    )
    assert names(codec, ids).startswith("<L1> <swap> <i1> <i")
    assert decode(codec, EditRequest(asked, region), ids) == region.replace(
        "limit_value", "upper_bound"
    )
    assert "confused" in names(codec, encoded.prompt_ids).replace(" ", "")
