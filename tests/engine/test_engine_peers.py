"""Peers of the engine bench: how llama-cpp-python is driven, and why a peer is left out."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from folders import write_folder

from midstream.bench import side_by_side
from midstream.bench.peers import LlamaCpp, Peer, PeerMissing
from midstream.engine.folder import read_folder
from midstream.engine.model import OnnxModel


class Llama:
    """The part of `llama_cpp.Llama` that the bench uses, with the signatures of its version 0.3."""

    def __init__(
        self,
        model_path: str,
        *,
        n_ctx: int = 512,
        n_threads: int | None = None,
        n_threads_batch: int | None = None,
        verbose: bool = True,
    ) -> None:
        if not Path(model_path).is_file():
            raise ValueError(f"Model path does not exist: {model_path}")
        self.room = n_ctx
        self.quiet = not verbose
        self.threads = (n_threads, n_threads_batch)
        self.tokens: list[int] = []
        self.resets = 0

    def reset(self) -> None:
        self.tokens = []
        self.resets += 1

    def eval(self, tokens: list[int]) -> None:
        assert len(self.tokens) + len(tokens) <= self.room
        self.tokens += tokens

    def sample(self, top_k: int = 40, top_p: float = 0.95, temp: float = 0.8) -> int:
        assert temp == 0
        return self.tokens[-1] + 1


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("llama_cpp")
    module.__spec__ = ModuleSpec("llama_cpp", None)
    module.Llama = Llama
    monkeypatch.setitem(sys.modules, "llama_cpp", module)


@pytest.mark.usefixtures("llama")
def test_llama_reads_a_prompt_and_takes_greedy_steps(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    peer: Peer = LlamaCpp(file, 2, 64)
    peer.read([5, 6], 3)
    peer.step()
    peer.step()
    loaded: Llama = peer._model  # type: ignore[attr-defined]
    assert loaded.tokens == [5, 6, 7, 8]
    assert (loaded.room, loaded.threads, loaded.quiet) == (64, (2, 2), True)
    peer.read([1], 3)
    assert loaded.tokens == [1]


@pytest.mark.usefixtures("llama")
def test_llama_beside_the_engine(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", layers=1, context=800)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    model = OnnxModel(read_folder(tmp_path), threads=1)
    peers: dict[str, Peer] = {LlamaCpp.name: LlamaCpp(tmp_path / "model.gguf", 1, 800)}
    result = side_by_side.forced_edits(model, peers, 1)
    beside = result.peers["llama.cpp"]
    assert set(beside) == {"tokens/s", "characters/s", "whole, ms"}
    assert all(figure.theirs > 0 and figure.times > 0 for figure in beside.values())
    # This one computes nothing at all.
    assert beside["tokens/s"].times < 1
    speeds = side_by_side.steps(model, peers)
    assert set(speeds[256].peers["llama.cpp"]) == {"plain", "prefill"}


@pytest.mark.usefixtures("llama")
def test_llama_without_a_file_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(PeerMissing, match="no --gguf FILE"):
        LlamaCpp(None, 1, 64)
    with pytest.raises(PeerMissing, match="does not exist"):
        LlamaCpp(tmp_path / "nowhere.gguf", 1, 64)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("midstream.bench.peers.find_spec", lambda name: None)
    with pytest.raises(PeerMissing, match="llama-cpp-python is not installed"):
        LlamaCpp(tmp_path, 1, 64)
