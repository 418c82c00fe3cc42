"""The model that is shipped: complete, exact with drafts, and it does what the program promises.

All other tests of the built-in model use the suite's own (``helpers.copyist``): they neither wait
for the shipped one nor depend on what it happens to answer.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from difflib import ndiff
from itertools import islice
from pathlib import Path

import pytest

from midstream import wafer
from midstream.bench.reference_edits import REFERENCE_EDITS, edit_requests
from midstream.demo import make_demo
from midstream.demo.tour import PATH, STEPS
from midstream.edits.request import RegionRequest, render_request
from midstream.engine.folder import Drafting, read_folder
from midstream.engine.inspect import check
from midstream.engine.model import OnnxModel
from midstream.engine.types import GenerateRequest, Message, TextModel
from midstream.pairing.request.question import Question
from midstream.pairing.request.suggesting import suggest
from midstream.pairing.session import PairingSession
from midstream.resources import default_model, model_folders, read_toml
from midstream.serving.source import ModelSource
from midstream.settings import Settings
from tests.helpers import screenshots

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not model_folders(), reason="no model is shipped"),
]

each_folder = pytest.mark.parametrize("folder", model_folders(), ids=lambda path: path.name)

MOST_BYTES = 300_000_000
MOST_BYTES_OF_A_FILE = 95_000_000
"""Limits of hosts of repositories: all files together, and one."""


@pytest.fixture(scope="module")
def model() -> Iterator[TextModel]:
    """The model of the built-in server."""
    model = ModelSource().load()
    yield model
    model.close()


def asked(instruction: str, region: str) -> GenerateRequest:
    text = render_request(RegionRequest(instruction, region, "settings.py", "python"))
    return GenerateRequest((Message("user", text),), max_output_tokens=512)


def text_of(model: TextModel, request: GenerateRequest) -> str:
    return "".join(piece.text for piece in model.start(request))


@each_folder
def test_the_folder_is_complete(folder: Path) -> None:
    for name in ("model.onnx", "genai_config.json", "tokenizer.json", "MODEL_CARD.md"):
        assert (folder / name).stat().st_size > 0
    facts = read_toml(folder / "midstream.toml")
    assert facts["name"] == folder.name
    limits, config = facts["limits"], json.loads((folder / "genai_config.json").read_text())
    total = limits["max_prompt_tokens"] + limits["max_output_tokens"]
    assert total <= config["model"]["context_length"]
    card = (folder / "MODEL_CARD.md").read_text("utf-8")
    for task in facts["card"].get("tasks", ()):
        assert task["name"].replace("_", " ") in card
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert max(sizes) <= MOST_BYTES_OF_A_FILE
    assert sum(sizes) <= MOST_BYTES


@each_folder
def test_it_passes_the_check(folder: Path) -> None:
    results = {result.name: result for result in check(folder)}
    assert all(result.ok for result in results.values())
    assert results["cache"].detail == "drafting is exact"


@each_folder
def test_a_wafer_could_run_it(folder: Path) -> None:
    workload = wafer.resolve(str(folder))
    report = wafer.simulate(workload, context=2048)
    assert report.plan.wafers == 1
    assert report.rate.low < report.rate.mid < report.rate.high
    assert workload.shape.layers == len(report.plan.layer_items) > 0
    assert not any(op.kind == "host" for kind in workload.kinds for op in kind)


def every_edit() -> Iterator[GenerateRequest]:
    """Every reference instruction for every reference function, in three wordings."""
    functions = dict.fromkeys(region for _, region in REFERENCE_EDITS)
    for instruction, _ in REFERENCE_EDITS:
        for region in functions:
            for words in (instruction, f"please {instruction}", f"{instruction} everywhere"):
                yield asked(words, region)


def drafts_change_nothing(folder: Path, requests: Iterator[GenerateRequest]) -> int:
    model = OnnxModel(read_folder(folder))
    count = 0
    for request in requests:
        texts: set[str] = set()
        for drafting in (None, Drafting()):
            model.drafting = drafting
            texts.add(text_of(model, request))
        assert len(texts) == 1
        count += 1
    model.close()
    return count


@each_folder
def test_drafted_edits_are_the_undrafted_ones(folder: Path) -> None:
    assert drafts_change_nothing(folder, islice(edit_requests(), 4)) == 4


@pytest.mark.slow
@each_folder
def test_drafts_change_nothing_on_hundreds_of_prompts(folder: Path) -> None:
    assert drafts_change_nothing(folder, every_edit()) == 216


FUNCTION = """\
def load_settings(path, encoding="utf-8"):
    if not path:
        return {}
    with open(path, encoding=encoding) as file:
        return json.load(file)
"""
CHARSET = FUNCTION.replace('(path, encoding="', '(path, charset="')


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("rename the parameter path to settings_path", FUNCTION.replace("path", "settings_path")),
        (
            "rename `encoding` to `charset`",
            CHARSET.replace("encoding=encoding", "encoding=charset"),
        ),
        (
            "rename load_settings to read_settings",
            FUNCTION.replace("load_settings", "read_settings"),
        ),
    ],
)
def test_it_renames(model: TextModel, instruction: str, expected: str) -> None:
    assert text_of(model, asked(instruction, FUNCTION)) == expected


FILES = """\
def load(path, limit=None):
    \"\"\"Load it.\"\"\"
    with open(path, "rb") as handle:
        data = handle.read(limit)
    data = data.strip()
    return data
"""
OUTSIDE = (
    "split load in two",
    "add type hints to load",
    "use a context manager from the standard library",
    "retry three times when it fails",
    "cache what was read",
    "count how many lines there are",
    "make it work with str as well",
    "read the file in chunks",
)


async def test_what_it_cannot_do_is_left_alone_or_flagged(tmp_path: Path) -> None:
    if "confidence" not in read_toml(default_model() / "midstream.toml"):
        pytest.skip("the shipped model is not calibrated")
    (tmp_path / "files.py").write_text(FILES)
    async with await PairingSession.open(tmp_path, settings=Settings(), watch=False) as session:
        await session.turns.instruct(
            Question("rename `data` to `text`", path="files.py", selection=(0, 6))
        )
        await session.turns.finished()
        assert session.turns.last is not None
        assert session.turns.last.unsure == ""
        assert session.hunks.undecided("files.py")
        await session.decisions.reject_rest("files.py")
        flagged = left = wrong = 0
        for words in OUTSIDE:
            turn = await session.turns.instruct(Question(words, path="files.py", selection=(0, 6)))
            await session.turns.finished()
            waiting = session.hunks.undecided("files.py")
            left += not waiting
            flagged += bool(turn.unsure)
            wrong += bool(waiting) and not turn.unsure
            await session.decisions.reject_rest("files.py")
        assert session.status.notices
        assert flagged + left >= 2 * wrong, (flagged, left, wrong)


def edited(root: Path, path: str, instruction: str, *more: str) -> str:
    """The output of ``midstream edit``; the model has to be sure of the change."""
    command = [sys.executable, "-m", "midstream", "edit", path, "-m", instruction, *more]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (instruction, done.stdout, done.stderr)
    return done.stdout


async def test_it_is_sure_of_what_the_tour_asks_for(tmp_path: Path) -> None:
    asks = [step.says for step in STEPS if step.says]
    root = make_demo(tmp_path).root
    settings = Settings(journal=False)
    async with await PairingSession.open(root, settings=settings, watch=False) as session:
        for words in asks:
            turn = await session.turns.instruct(Question(words, path=PATH))
            await session.turns.finished()
            first, *others = session.hunks.undecided(PATH)
            assert turn.unsure == ""
            assert len(others) >= 3
            await session.decisions.accept(first.id)


WRITTEN = {
    "Rename a variable": ["totals = []", "totals.append((minutes, client))", "in totals:"],
    "Guard clause": ["if not entries:", "raise ValueError"],
    "Add a parameter": ["def for_client(entries, client, limit=None):"],
    "Format strings": ['label = f"{days} days"'],
    "Un-nest": ["return 0"],
}
"""Lines of the right answer to each suggestion of the demo."""


def test_it_does_what_the_demo_suggests(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    assert [suggestion.title for suggestion in demo.suggestions] == list(WRITTEN)
    for suggestion in demo.suggestions:
        before = (demo.root / suggestion.path).read_text()
        edited(demo.root, suggestion.path, suggestion.instruction, "--apply")
        after = (demo.root / suggestion.path).read_text()
        ast.parse(after)
        added = [line for line in ndiff(before.splitlines(), after.splitlines()) if line[0] == "+"]
        for line in WRITTEN[suggestion.title]:
            assert any(line in new for new in added), suggestion.instruction


def test_it_does_what_a_folder_suggests(tmp_path: Path) -> None:
    files = {
        "app.py": "def sign(x):\n    if x < 0:\n        return -1\n    else:\n        return 1\n",
        "more.py": "def known(x):\n    return x != None\n",
        "last.py": "def load(f):\n    try:\n        f()\n    except:\n        pass\n",
    }
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    suggestions = suggest(tmp_path, list(files))
    assert len(suggestions) == len(files)
    for suggestion in suggestions:
        edited(tmp_path, suggestion.path, suggestion.instruction, "--apply")
    assert "else" not in (tmp_path / "app.py").read_text()
    assert "x is not None" in (tmp_path / "more.py").read_text()
    assert "except Exception:" in (tmp_path / "last.py").read_text()


def test_it_answers_what_the_first_picture_shows(tmp_path: Path) -> None:
    """The readme promises it: no answer that the model cannot give."""
    make = screenshots.load()
    root = make_demo(tmp_path).root
    lines = edited(root, make.FILE, make.INSTRUCTION).splitlines()
    new = [line[1:] for line in lines if line[:1] == "+" and line[:3] != "+++"]
    old = [line[1:] for line in lines if line[:1] == "-" and line[:3] != "---"]
    assert len(new) == 4, lines
    assert new == [make.shipped_answer(line) for line in old]
    below = (root / make.FILE).read_text().partition("class Invoice")[2]
    assert sum(make.shipped_answer(line) != line for line in below.splitlines()) == 4
