"""Cache rows on disk: what one process has read, the next one need not read again."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from midstream.engine.folder import read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.prefix_files import MAGIC, MIN_ROWS
from midstream.engine.types import GenerateRequest, Message, Usage
from midstream.workspace.paths import state_dir
from tests.helpers.folders import SAMPLE, write_folder
from tests.helpers.property import examples

PLENTY = 1 << 30
LONG = SAMPLE * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    write_folder(path, prompt="chat", context=2048)
    return path


def request(*texts: str) -> GenerateRequest:
    messages = tuple(Message("user", text) for text in texts)
    return GenerateRequest(messages=messages, max_output_tokens=8, temperature=0)


def ask(model: OnnxModel, *texts: str) -> tuple[str, Usage]:
    generation = model.start(request(*texts))
    text = "".join(piece.text for piece in generation)
    return text, generation.usage


def session(folder: Path, *texts: str, kept_bytes: int = PLENTY) -> tuple[str, Usage]:
    """A process's life: load, ask once, close."""
    model = OnnxModel(read_folder(folder), threads=1, kept_bytes=kept_bytes)
    try:
        return ask(model, *texts)
    finally:
        model.close()


def files() -> list[Path]:
    return sorted((state_dir() / "prefixes").glob("*"))


def test_the_next_session_reads_only_what_is_new(folder: Path) -> None:
    cold, first = session(folder, LONG)
    assert first.cached_tokens == 0
    warm, again = session(folder, LONG)
    assert warm == cold
    # The last tokens are always run.
    assert again.cached_tokens >= again.input_tokens - 2
    _, longer = session(folder, LONG, "And now?")
    assert longer.cached_tokens >= first.input_tokens - 2 > MIN_ROWS


def test_text_from_kept_rows_is_the_text_without(folder: Path) -> None:
    session(folder, LONG, "One question.")
    alone, _ = session(folder, LONG, "Another question.", kept_bytes=0)
    kept, usage = session(folder, LONG, "Another question.")
    assert usage.cached_tokens > MIN_ROWS
    assert kept == alone


def test_nothing_is_kept_unless_asked_for(folder: Path) -> None:
    session(folder, LONG, kept_bytes=0)
    session(folder, "short")
    assert files() == []


def test_files_are_the_users_alone(folder: Path) -> None:
    session(folder, LONG)
    (file,) = files()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_longer_prompt_replaces_its_beginning(folder: Path) -> None:
    session(folder, LONG)
    (before,) = files()
    session(folder, LONG, LONG)
    (after,) = files()
    assert after != before
    # What is there already is not written again.
    written = after.stat().st_ino
    session(folder, LONG, LONG)
    assert [file.stat().st_ino for file in files()] == [written]


def test_the_files_used_longest_ago_go(folder: Path) -> None:
    texts = [f"{n} {LONG}" for n in range(3)]
    session(folder, texts[0])
    (file,) = files()
    budget = int(2.5 * file.stat().st_size)
    os.utime(file, (1, 1))
    session(folder, texts[1], kept_bytes=budget)
    # Used, so it is the newest again.
    session(folder, texts[0], kept_bytes=budget)
    session(folder, texts[2], kept_bytes=budget)
    assert len(files()) == 2
    assert session(folder, texts[0], kept_bytes=budget)[1].cached_tokens > MIN_ROWS
    assert session(folder, texts[1], kept_bytes=budget)[1].cached_tokens == 0


def test_rows_of_changed_weights_are_not_used(folder: Path) -> None:
    session(folder, LONG)
    write_folder(folder, prompt="chat", context=2048, seed=1)
    assert session(folder, LONG)[1].cached_tokens == 0


def test_another_model_finds_nothing(folder: Path, tmp_path: Path) -> None:
    session(folder, LONG)
    write_folder(tmp_path / "other", prompt="chat", context=2048, seed=1)
    assert session(tmp_path / "other", LONG)[1].cached_tokens == 0


def test_edit_models_keep_nothing(tmp_path: Path) -> None:
    write_folder(tmp_path / "edit", context=2048)
    model = OnnxModel(read_folder(tmp_path / "edit"), threads=1, kept_bytes=PLENTY)
    model.cache.extend(range(MIN_ROWS))
    model.close()
    assert files() == []


@pytest.fixture
def kept(folder: Path) -> tuple[str, Path, bytes]:
    """What a model says, the file that it leaves, and what is in it."""
    cold, _ = session(folder, LONG)
    (file,) = files()
    return cold, file, file.read_bytes()


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_thrown_away(
    folder: Path, kept: tuple[str, Path, bytes], data: st.DataObject
) -> None:
    cold, file, before = kept
    whole = bytearray(before)
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(whole)
    text, usage = session(folder, LONG)
    assert text == cold
    assert usage.cached_tokens == 0


def test_a_foreign_file_is_left_alone(folder: Path) -> None:
    place = state_dir() / "prefixes"
    place.mkdir(parents=True)
    (place / "x.rows").write_bytes(b"something else")
    (place / "y.rows").write_bytes(MAGIC + b"{not json}\n")
    assert session(folder, LONG)[1].cached_tokens == 0
    assert (place / "x.rows").exists()


def test_rows_that_others_made_are_not_believed(folder: Path) -> None:
    """Whoever writes rows decides what the model has read, whatever the prompt says."""
    cold, _ = session(folder, LONG)
    (file,) = files()
    magic, line, body = file.read_bytes().split(b"\n", 2)
    header = json.loads(line)
    forged = b"\0" * len(body)
    tokens = np.asarray(header["tokens"], np.int64).tobytes()
    digests = [
        hashlib.sha256(tokens + forged).hexdigest(),
        hashlib.sha256(header["source"].encode() + tokens + forged).hexdigest(),
        hmac.new(b"", header["source"].encode() + tokens + forged, hashlib.sha256).hexdigest(),
    ]
    for digest in digests:
        line = json.dumps(header | {"digest": digest}).encode()
        file.write_bytes(b"\n".join((magic, line, forged)))
        text, usage = session(folder, LONG)
        assert (text, usage.cached_tokens) == (cold, 0)


@pytest.mark.parametrize("count", [0, 10**30, -(2**70)])
def test_a_header_of_any_content_is_no_error(folder: Path, count: int) -> None:
    cold, _ = session(folder, LONG)
    (file,) = files()
    magic, line, body = file.read_bytes().split(b"\n", 2)
    header = json.loads(line)
    for tokens in ([*header["tokens"], count], [count] * 5, [*header["tokens"]] * 2):
        line = json.dumps(header | {"tokens": tokens}).encode()
        file.write_bytes(b"\n".join((magic, line, body)))
        text, usage = session(folder, LONG)
        assert (text, usage.cached_tokens) == (cold, 0)


def test_a_pipe_or_a_device_among_the_files_is_left_alone(folder: Path) -> None:
    cold, _ = session(folder, LONG)
    (file,) = files()
    os.mkfifo(file.with_name("pipe.rows"))
    file.with_name("device.rows").symlink_to("/dev/zero")
    text, usage = session(folder, LONG)
    assert text == cold
    assert usage.cached_tokens > MIN_ROWS
    file.unlink()
    file.symlink_to("/dev/zero")
    assert session(folder, LONG)[0] == cold


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    (state_dir()).mkdir(parents=True, exist_ok=True)
    (state_dir() / "prefixes").write_text("in the way")
    text, _ = session(folder, LONG)
    assert session(folder, LONG)[0] == text


def test_a_generation_that_runs_at_the_end_loses_nothing(folder: Path) -> None:
    model = OnnxModel(read_folder(folder), threads=1, kept_bytes=PLENTY)
    generation = model.start(replace(request(LONG), max_output_tokens=500))
    next(piece for piece in generation if piece.tokens)
    model.close()
    assert len(files()) == 1
