"""Other engines on the same machine, for `midstream bench engine`: plain greedy decoding of the
same folder, or of a file of equal size, where they are installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class PeerMissing(Exception):  # noqa: N818 - a reason, not a fault
    """A peer cannot be compared with; the text says why."""


class Peer(Protocol):
    """An engine that decodes greedily, one token at a time."""

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt; there will be at most `room` steps."""
        ...

    def step(self) -> int:
        """Generate one token and return it."""
        ...


class Genai:
    """onnxruntime-genai on the same folder."""

    name = "onnxruntime-genai"

    def __init__(self, path: Path, threads: int) -> None:
        """Load the folder.

        Raises:
            PeerMissing: it is not installed, or cannot run the folder.
        """
        if find_spec("onnxruntime_genai") is None:
            raise PeerMissing("it is not installed (pip install onnxruntime-genai)")
        if not (path / "genai_config.json").is_file():
            raise PeerMissing("the folder is not in its layout")
        self._runtime: Any = import_module("onnxruntime_genai")
        self._running: Any = None
        try:
            config = self._runtime.Config(str(path))
            chosen = {"intra_op_num_threads": threads}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": chosen}}}))
            self._model = self._runtime.Model(config)
        except Exception as error:
            raise PeerMissing(str(error).splitlines()[0]) from error

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt."""
        params = self._runtime.GeneratorParams(self._model)
        length = len(ids) + room + 1
        # It does not know where an answer ends, and shall not guess.
        params.set_search_options(max_length=length, min_length=length, do_sample=False)
        self._running = self._runtime.Generator(self._model, params)
        self._running.append_tokens(list(ids))

    def step(self) -> int:
        """Generate one token and return it."""
        self._running.generate_next_token()
        return int(self._running.get_next_tokens()[0])


class LlamaCpp:
    """llama.cpp on a GGUF file, through the C functions that llama-cpp-python passes on."""

    name = "llama.cpp"

    def __init__(self, gguf: Path, threads: int, context: int) -> None:
        """Load a file for contexts of this length.

        Raises:
            PeerMissing: it is not installed, or cannot run the file.
        """
        if not llama_installed():
            raise PeerMissing(
                "llama-cpp-python is not installed; pip builds it, with a C++ compiler"
            )
        if not gguf.is_file():
            raise PeerMissing(f"there is no file {gguf}")
        self._runtime: Any = import_module("llama_cpp")
        self._quiet = self._runtime.llama_log_callback(_say_nothing)
        self._runtime.llama_log_set(self._quiet, None)
        for extra in (True, False):
            # Some of its kernels end the process where a processor promises more than it lets do.
            if _survives(gguf, extra):
                break
        else:
            raise PeerMissing(f"it cannot run {gguf.name}")
        chosen = self._runtime.llama_model_default_params()
        chosen.use_extra_bufts = extra
        self._model = self._runtime.llama_model_load_from_file(str(gguf).encode(), chosen)
        params = self._runtime.llama_context_default_params()
        params.n_ctx, params.n_threads, params.n_threads_batch = context, threads, threads
        self._context = self._runtime.llama_init_from_model(self._model, params)
        vocabulary = self._runtime.llama_model_get_vocab(self._model)
        self._size = int(self._runtime.llama_vocab_n_tokens(vocabulary))
        self.plain_kernels = not extra

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt."""
        memory = self._runtime.llama_get_memory(self._context)
        self._runtime.llama_memory_clear(memory, False)
        at = self._runtime.llama_n_batch(self._context)
        for start in range(0, len(ids), at):
            self._decode(ids[start : start + at])

    def step(self) -> int:
        """Generate one token and return it."""
        logits = self._runtime.llama_get_logits_ith(self._context, -1)
        token = int(np.ctypeslib.as_array(logits, (self._size,)).argmax())
        self._decode([token])
        return token

    def _decode(self, ids: Sequence[int]) -> None:
        tokens = (self._runtime.llama_token * len(ids))(*ids)
        batch = self._runtime.llama_batch_get_one(tokens, len(ids))
        if self._runtime.llama_decode(self._context, batch):
            raise RuntimeError("llama.cpp could not run a batch")


def _say_nothing(level: int, text: bytes, data: object) -> None:
    """Take a line of llama.cpp's log."""


def llama_installed() -> bool:
    """Return whether llama-cpp-python is there."""
    return find_spec("llama_cpp") is not None


_TRIAL = """
import sys, llama_cpp as l
chosen = l.llama_model_default_params()
chosen.use_extra_bufts = sys.argv[2] == "True"
model = l.llama_model_load_from_file(sys.argv[1].encode(), chosen)
context = l.llama_init_from_model(model, l.llama_context_default_params())
for count in (40, 1):
    batch = l.llama_batch_get_one((l.llama_token * count)(), count)
    assert l.llama_decode(context, batch) == 0
"""


def _survives(gguf: Path, extra: bool) -> bool:
    """Return whether a process of its own can run a file, with its special kernels or without."""
    command = [sys.executable, "-c", _TRIAL, str(gguf), str(extra)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
