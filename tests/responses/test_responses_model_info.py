"""What a server says about its model becomes typed once."""

from __future__ import annotations

from midstream.responses.model_info import ModelInfo, Pacing

SAID = {
    "prompt": "edit-rewrite",
    "edit_format": "region",
    "max_region_lines": "120",
    "languages": "python, rust",
    "context_length": "4096",
    "pacing": "gpu",
    "pacing_model": "llama3.3-70b",
    "pacing_machine": "8 x NVIDIA H100 SXM",
    "pacing_rate": "74.7",
}


def test_the_strings_of_a_server_become_typed() -> None:
    assert ModelInfo().updated(SAID) == ModelInfo(
        prompt="edit-rewrite",
        declared_format="region",
        max_region_lines=120,
        languages=("python", "rust"),
        context_length=4096,
        pacing=Pacing("gpu", "llama3.3-70b", "8 x NVIDIA H100 SXM", 74.7),
    )


def test_what_is_missing_or_garbled_stays_as_it_was() -> None:
    known = ModelInfo().updated(SAID)
    assert known.updated({}) == known
    garbled = {"max_region_lines": "many", "context_length": "-1", "edit_format": "", "x": "y"}
    assert known.updated(garbled) == known
    assert known.updated({"max_region_lines": "7"}).max_region_lines == 7
    assert ModelInfo().updated({"max_region_lines": "0", "pacing_rate": "1"}) == ModelInfo()
    assert ModelInfo().updated({"pacing": "wafer", "pacing_rate": "?"}).pacing == Pacing(
        "wafer", "?", "wafer"
    )


def test_a_response_says_the_same_with_a_prefix() -> None:
    metadata = {f"midstream.{name}": value for name, value in SAID.items()}
    assert ModelInfo().learned(metadata) == ModelInfo().updated(SAID)
    assert ModelInfo().learned({"prompt": "edit-rewrite", "user": "x"}) == ModelInfo()


def test_an_unknown_model_is_a_chat_model_that_finds_places() -> None:
    unknown = ModelInfo()
    assert (unknown.is_chat, unknown.is_edit_model) == (True, False)
    assert (unknown.edit_format, unknown.finds_places) == ("auto", True)
    region = ModelInfo(declared_format="region")
    assert (region.edit_format, region.finds_places) == ("region", False)
    built_in = ModelInfo().updated(SAID)
    assert (built_in.is_chat, built_in.is_edit_model) == (False, True)
    assert (ModelInfo("replay").edit_format, ModelInfo("replay").finds_places) == ("region", False)
    assert ModelInfo().updated({"languages": "any"}).languages == ()
