"""Drafts of patches: what is expected of marks, context and words, and that nothing breaks them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from midstream.bench.formats import format_edits
from midstream.engine.drafting import Drafter
from midstream.engine.folder import read_folder
from midstream.engine.patch_drafting import PatchDrafter
from midstream.engine.plan import Proposer
from midstream.engine.prompts import ChatPrompt, load_tokenizer
from midstream.engine.types import GenerateRequest, Message
from tests.helpers.folders import write_folder

EDITS = {edit.name: edit for edit in format_edits()}

SOURCE = """\
def first(size):
    head = 1
    total = size + 1
    return total


def second(size):
    # Nothing of interest.
    return size * 2


def third(items):
    result = []
    for item in items:
        result.append(item)
    return result


def fourth(items, size):
    kept = items[:size]
    rest = items[size:]
    return kept, rest
"""


@cache
def tokenizer() -> Tokenizer:
    """A byte-level BPE of real code, as those of published models."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=[],
    )
    made.train_from_iterator(
        [EDITS["whole file"].answer, *(e.answer for e in EDITS.values())], trainer
    )
    return made


def ids(text: str) -> list[int]:
    return list(tokenizer().encode(text, add_special_tokens=False).ids)


def drafter(source: str = SOURCE) -> PatchDrafter:
    return PatchDrafter(source, tokenizer(), ids(source))


def after(answer: str, source: str = SOURCE, most: int = 400) -> str:
    """What is expected behind the beginning of an answer."""
    made = drafter(source)
    made.learn(ids(answer))
    return tokenizer().decode(made.propose(most), skip_special_tokens=False)


def runs(drafter: Proposer, answer: list[int], most: int = 16) -> int:
    """Write an answer with a drafter; return the runs that it takes."""
    at = count = 0
    while at < len(answer):
        draft = drafter.propose(min(most, len(answer) - at - 1))
        assert len(draft) <= most
        taken = 0
        while taken < len(draft) and draft[taken] == answer[at + taken]:
            taken += 1
        drafter.learn(answer[at : at + taken + 1])
        at += taken + 1
        count += 1
    return count


@pytest.mark.parametrize(("name", "times"), [("SEARCH/REPLACE", 1.4), ("apply_patch", 2.0)])
def test_a_patch_takes_fewer_runs_than_by_its_tokens_alone(name: str, times: float) -> None:
    edit = EDITS[name]
    prompt, answer = ids(edit.prompt), ids(edit.answer)
    plain = runs(Drafter((), prompt), answer)
    drafted = runs(PatchDrafter(edit.prompt, tokenizer(), prompt), answer)
    assert plain >= times * drafted


def test_a_whole_file_takes_no_more_runs() -> None:
    edit = EDITS["whole file"]
    prompt, answer = ids(edit.prompt), ids(edit.answer)
    drafted = runs(PatchDrafter(edit.prompt, tokenizer(), prompt), answer)
    assert drafted <= runs(Drafter((), prompt), answer)


PATCH = """\
*** Begin Patch
*** Update File: made.py
@@
-def first(size):
+def first(count):
     head = 1
-    total = size + 1
+    total = count + 1
     return total
@@
"""


def test_an_exchanged_word_foretells_the_hunks_of_apply_patch() -> None:
    # One line of context is given behind a change and none in front of it.
    assert after(PATCH).startswith(
        "-def second(size):\n+def second(count):\n     # Nothing of interest.\n"
        "@@\n-    return size * 2\n+    return count * 2\n \n"
        "@@\n-def fourth(items, size):\n-    kept = items[:size]\n-    rest = items[size:]\n"
        "+def fourth(items, count):\n+    kept = items[:count]\n+    rest = items[count:]\n"
    )


def test_an_exchanged_word_foretells_the_blocks_of_search_replace() -> None:
    first = (
        "made.py\n<<<<<<< SEARCH\ndef first(size):\n    head = 1\n=======\n"
        "def first(count):\n    head = 1\n>>>>>>> REPLACE\n"
    )
    assert after(first).startswith(
        "made.py\n<<<<<<< SEARCH\n    total = size + 1\n    return total\n=======\n"
        "    total = count + 1\n    return total\n>>>>>>> REPLACE"
    )


def test_removed_lines_come_back_with_a_plus() -> None:
    begun = "*** Begin Patch\n*** Update File: made.py\n@@\n-    kept = items[:size]\n"
    assert after(begun).startswith("+    kept = items[:size]\n     rest = items[size:]\n")
    assert after(f"{begun}-    rest").startswith(" = items[size:]\n+    kept = items[:size]\n")


def test_a_line_goes_on_behind_a_new_name() -> None:
    begun = "*** Begin Patch\n*** Update File: made.py\n@@\n-    rest = items[size:]\n"
    assert after(f"{begun}+    left = items").startswith("[size:]\n     return kept, rest\n")


def test_headings_with_line_numbers_are_not_foretold() -> None:
    begun = (
        "--- a/made.py\n+++ b/made.py\n@@ -1,3 +1,3 @@\n-def first(size):\n+def first(count):\n"
        "     head = 1\n"
    )
    expected = after(begun)
    assert "@@" not in expected
    assert expected.startswith("-    total = size + 1\n+    total = count + 1\n")


def test_a_word_that_stays_once_is_no_longer_exchanged() -> None:
    begun = PATCH.removesuffix("@@\n") + "@@\n-def second(size):\n+def other(size):\n"
    assert after(f"{begun}     # Nothing of interest.\n") == "*** End Patch"


def test_openings_are_completed() -> None:
    assert after("<<<<<<<").startswith(" SEARCH")
    assert after("*** B").startswith("egin Patch")
    assert after("*** Begin Patch\n").startswith("*** Update File:")


def test_signs_are_no_words() -> None:
    """That one bracket becomes another says nothing of the other brackets."""
    hunk = "@@\n-    kept = items[:size]\n+    kept = items{:size]"
    assert after(f"*** Begin Patch\n*** Update File: made.py\n{hunk}").startswith(
        "\n     rest = items[size:]\n     return kept, rest\n"
    )


PIECES = st.sampled_from(
    [
        *SOURCE.splitlines(),
        *PATCH.splitlines(),
        "<<<<<<< SEARCH",
        "=======",
        ">>>>>>> REPLACE",
        "@@ -1,2 +1,3 @@",
        "*** End Patch",
        "-    head = 1",
        "+    kopf = 1",
        "",
        "é\N{SNOWMAN}\N{PILE OF POO}",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=30), st.integers(1, 40))
def test_any_answer_is_written_in_the_end(lines: list[str], most: int) -> None:
    answer = ids("\n".join(lines))
    assert runs(drafter(), answer, most) <= max(1, len(answer))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_source_will_do(source: str, answer: str) -> None:
    runs(drafter(source), ids(f"@@\n{answer}"))
    runs(drafter(source), ids(f"<<<<<<< SEARCH\n{answer}\n=======\n{answer}"))


def test_chat_models_draft_patches_of_what_was_shown(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    folder = read_folder(tmp_path)
    prompt = ChatPrompt(folder, load_tokenizer(folder))
    plan = prompt.plan(GenerateRequest(messages=(Message("user", f"Mend this:\n{SOURCE}"),)))
    assert isinstance(plan.drafter, PatchDrafter)
    plan.drafter.learn(load_tokenizer(folder).encode("@@\n-    kept = items[:size]\n").ids)
    assert plan.drafter.propose(8)
