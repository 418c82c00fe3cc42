"""Peers of the engine bench: how llama-cpp-python is driven, and why a peer is left out."""

from __future__ import annotations

import ctypes
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from midstream.bench import timing
from midstream.bench.peers import LlamaCpp, Peer, PeerMissing
from midstream.bench.progress import BenchProgress
from midstream.engine.folder import read_folder
from midstream.engine.model import OnnxModel
from tests.helpers.folders import write_folder


class Llama:
    """The C functions that the bench calls, as llama-cpp-python 0.3 passes them on; the next token
    is the last one plus one.
    """

    VOCABULARY = 400
    llama_token = ctypes.c_int32
    llama_log_callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.params = SimpleNamespace(n_ctx=512)
        self.threads = (4, 4)
        self.chosen = SimpleNamespace(use_extra_bufts=True)

    def llama_log_set(self, callback: Any, data: Any) -> None:
        assert callable(callback)

    def llama_model_default_params(self) -> SimpleNamespace:
        return self.chosen

    def llama_model_load_from_file(self, path: bytes, params: Any) -> str:
        assert Path(path.decode()).is_file()
        return "model"

    def llama_context_default_params(self) -> SimpleNamespace:
        return self.params

    def llama_init_from_model(self, model: str, params: Any) -> str:
        return "context"

    def llama_set_n_threads(self, context: str, steps: int, batches: int) -> None:
        self.threads = (steps, batches)

    def llama_model_get_vocab(self, model: str) -> str:
        return "vocabulary"

    def llama_vocab_n_tokens(self, vocabulary: str) -> int:
        return self.VOCABULARY

    def llama_get_memory(self, context: str) -> str:
        return "memory"

    def llama_memory_clear(self, memory: str, data: bool) -> None:
        self.tokens = []

    def llama_n_batch(self, context: str) -> int:
        return 64

    def llama_batch_get_one(self, tokens: Any, count: int) -> list[int]:
        return list(tokens)[:count]

    def llama_decode(self, context: str, batch: list[int]) -> int:
        assert len(batch) <= 64
        self.tokens += batch
        return int(len(self.tokens) > self.params.n_ctx)

    def llama_get_logits_ith(self, context: str, row: int) -> Any:
        assert row == -1
        logits = (ctypes.c_float * self.VOCABULARY)()
        logits[(self.tokens[-1] + 1) % self.VOCABULARY] = 1
        return ctypes.cast(logits, ctypes.POINTER(ctypes.c_float))


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> Llama:
    module: Any = Llama()
    module.__spec__ = ModuleSpec("llama_cpp", None)
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    # Its special kernels end the process, the others do not.
    monkeypatch.setattr("midstream.bench.peers._survives", lambda gguf, extra: not extra)
    return module


def test_llama_reads_a_prompt_and_takes_greedy_steps(tmp_path: Path, llama: Llama) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    peer: Peer = LlamaCpp(file, 2, 100)
    peer.read([5, 6], 3)
    assert [peer.step(), peer.step()] == [7, 8]
    assert llama.tokens == [5, 6, 7, 8]
    assert (llama.params.n_ctx, llama.threads) == (100, (2, 2))
    assert llama.chosen.use_extra_bufts is False
    # As many tokens at once as it takes.
    peer.read(list(range(90)), 3)
    assert llama.tokens == list(range(90))
    with pytest.raises(RuntimeError, match=r"llama\.cpp could not run"):
        peer.read([1] * 101, 3)


@pytest.mark.system
def test_llama_beside_the_engine(tmp_path: Path, llama: Llama) -> None:
    write_folder(tmp_path, layers=1, context=2000)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    model = OnnxModel(read_folder(tmp_path), threads=1)
    peers: dict[str, Peer] = {LlamaCpp.name: LlamaCpp(tmp_path / "model.gguf", 1, 2000)}
    progress = BenchProgress()
    beside = timing.forced_edits(model, peers, 1, progress).peers["llama.cpp"]
    assert set(beside) == {"tokens/s", "characters/s", "whole, ms"}
    assert all(figure.theirs > 0 and figure.times > 0 for figure in beside.values())
    speeds = timing.steps(model, peers, progress)
    assert set(speeds[256].peers["llama.cpp"]) == {"plain", "prefill"}
    # An edit model answers in a code of its own; the same text in full is what others write.
    beside = timing.edits(model, peers, 1, progress).peers["llama.cpp"]
    title = "same text in full, "
    assert set(beside) > {f"{title}characters/s", f"{title}whole, ms"}


def test_llama_without_a_file_is_left_out(tmp_path: Path, llama: Llama) -> None:
    with pytest.raises(PeerMissing, match=r"no file .*nowhere\.gguf"):
        LlamaCpp(tmp_path / "nowhere.gguf", 1, 64)


def test_a_file_that_ends_every_process_is_left_out(
    tmp_path: Path, llama: Llama, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr("midstream.bench.peers._survives", lambda gguf, extra: False)
    with pytest.raises(PeerMissing, match=r"cannot run model\.gguf"):
        LlamaCpp(file, 1, 64)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("midstream.bench.peers.find_spec", lambda name: None)
    with pytest.raises(PeerMissing, match=r"neither llama-cpp-python.* nor xllamacpp is"):
        LlamaCpp(tmp_path, 1, 64)
