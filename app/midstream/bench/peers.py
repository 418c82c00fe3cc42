"""Other engines on the same machine, for `midstream bench engine`: plain greedy decoding of the
same folder, or of a file of equal size, where they are installed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol


class PeerMissing(Exception):  # noqa: N818 - a reason, not a fault
    """A peer cannot be compared with; the text says why."""


class Peer(Protocol):
    """An engine that decodes greedily, one token at a time."""

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt; there will be at most `room` steps."""
        ...

    def step(self) -> None:
        """Generate one token."""
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

    def step(self) -> None:
        """Generate one token."""
        self._running.generate_next_token()


class LlamaCpp:
    """llama.cpp on a GGUF file."""

    name = "llama.cpp"

    def __init__(self, gguf: Path | None, threads: int, context: int) -> None:
        """Load a file for contexts of this length.

        Raises:
            PeerMissing: it is not installed, or there is no file that it can run.
        """
        if find_spec("llama_cpp") is None:
            raise PeerMissing(
                "llama-cpp-python is not installed; pip builds it, with a C++ compiler"
            )
        if gguf is None:
            raise PeerMissing("no --gguf FILE of equal size and bits was given")
        runtime: Any = import_module("llama_cpp")
        try:
            self._model = runtime.Llama(
                str(gguf), n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False
            )
        except Exception as error:
            raise PeerMissing(str(error).splitlines()[0]) from error

    def read(self, ids: Sequence[int], room: int) -> None:
        """Forget everything and read a prompt."""
        self._model.reset()
        self._model.eval(list(ids))

    def step(self) -> None:
        """Generate one token."""
        self._model.eval([self._model.sample(temp=0.0)])
