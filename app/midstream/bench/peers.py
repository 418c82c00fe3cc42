"""Other engines on the same machine, for ``midstream bench engine``: plain greedy decoding of the
same folder, or of a file of equal size, where they are installed.
"""

from __future__ import annotations

import ctypes
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
        """Forget everything and read a prompt; there will be at most ``room`` steps."""
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
            PeerMissing: It is not installed, or cannot run the folder.
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
        # Without a minimum it would stop where it takes the answer to end.
        params.set_search_options(max_length=length, min_length=length, do_sample=False)
        self._running = self._runtime.Generator(self._model, params)
        self._running.append_tokens(list(ids))

    def step(self) -> int:
        """Generate one token and return it."""
        self._running.generate_next_token()
        return int(self._running.get_next_tokens()[0])


PARAMETER_BYTES = 1024
"""Room for the parameters of a model or context, whose length differs from version to version."""


class _ModelParameters(ctypes.Structure):
    """``llama_model_params``, of which nothing is changed."""

    _fields_ = (("rest", ctypes.c_uint8 * PARAMETER_BYTES),)


class _ContextParameters(ctypes.Structure):
    """``llama_context_params``, of which the first field is changed."""

    _fields_ = (("n_ctx", ctypes.c_uint32), ("rest", ctypes.c_uint8 * (PARAMETER_BYTES - 4)))


class _Batch(ctypes.Structure):
    """``llama_batch``."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("others", ctypes.c_void_p * 5),
    )


class SharedLlama:
    """The C functions of a shared library that holds llama.cpp, under their own names.

    What takes a structure by value reads only what belongs to it, so one that is too long is right
    for every version (on x86-64 and 64-bit Arm, where it is copied to the stack or passed by
    reference).
    """

    llama_token = ctypes.c_int32
    llama_log_callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

    def __init__(self, library: Path) -> None:
        """Load it."""
        functions: Any = ctypes.CDLL(str(library))
        pointer, number, flag = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
        tokens = ctypes.POINTER(ctypes.c_int32)
        for name, returned, *given in (
            ("llama_log_set", None, self.llama_log_callback, pointer),
            ("llama_model_default_params", _ModelParameters),
            ("llama_model_load_from_file", pointer, ctypes.c_char_p, _ModelParameters),
            ("llama_context_default_params", _ContextParameters),
            ("llama_init_from_model", pointer, pointer, _ContextParameters),
            ("llama_set_n_threads", None, pointer, number, number),
            ("llama_model_get_vocab", pointer, pointer),
            ("llama_vocab_n_tokens", number, pointer),
            ("llama_get_memory", pointer, pointer),
            ("llama_memory_clear", None, pointer, flag),
            ("llama_n_batch", ctypes.c_uint32, pointer),
            ("llama_batch_get_one", _Batch, tokens, number),
            ("llama_decode", number, pointer, _Batch),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), pointer, number),
        ):
            function = getattr(functions, name)
            function.restype, function.argtypes = returned, given
            setattr(self, name, function)


class LlamaCpp:
    """llama.cpp on a GGUF file, through the C functions of llama-cpp-python or of xllamacpp."""

    name = "llama.cpp"

    def __init__(self, gguf: Path, threads: int, context: int) -> None:
        """Load a file for contexts of this length.

        Raises:
            PeerMissing: It is not installed, or cannot run the file.
        """
        if not llama_installed():
            raise PeerMissing(
                "neither llama-cpp-python, which pip builds with a C++ compiler, nor xllamacpp is "
                "installed"
            )
        if not gguf.is_file():
            raise PeerMissing(f"there is no file {gguf}")
        self._runtime: Any = llama_runtime()
        self._quiet = self._runtime.llama_log_callback(_say_nothing)
        self._runtime.llama_log_set(self._quiet, None)
        named = not isinstance(self._runtime, SharedLlama)
        for extra in (True, False) if named else (True,):
            # Some of its kernels crash on processors that announce more than they allow.
            if _survives(gguf, extra):
                break
        else:
            raise PeerMissing(f"it cannot run {gguf.name}")
        chosen = self._runtime.llama_model_default_params()
        if named:
            chosen.use_extra_bufts = extra
        self._model = self._runtime.llama_model_load_from_file(str(gguf).encode(), chosen)
        params = self._runtime.llama_context_default_params()
        params.n_ctx = context
        self._context = self._runtime.llama_init_from_model(self._model, params)
        self._runtime.llama_set_n_threads(self._context, threads, threads)
        vocabulary = self._runtime.llama_model_get_vocab(self._model)
        self._size = int(self._runtime.llama_vocab_n_tokens(vocabulary))

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


LLAMA_PACKAGES = ("llama_cpp", "xllamacpp")
"""Packages that hold llama.cpp, best first: pip builds the first for the processor at hand."""


def llama_installed() -> bool:
    """Return whether llama.cpp is there."""
    return any(find_spec(name) is not None for name in LLAMA_PACKAGES)


def llama_runtime() -> Any:
    """Return llama.cpp's C functions."""
    if find_spec("llama_cpp") is not None:
        return import_module("llama_cpp")
    # What its own module adds is not needed, nor what that imports.
    spec = find_spec("xllamacpp")
    assert spec is not None
    assert spec.origin is not None
    return SharedLlama(next(Path(spec.origin).parent.glob("xllamacpp*.so")))


_TRIAL = """
import sys
from midstream.bench.peers import SharedLlama, llama_runtime
l = llama_runtime()
chosen = l.llama_model_default_params()
if not isinstance(l, SharedLlama):
    chosen.use_extra_bufts = sys.argv[2] == "True"
model = l.llama_model_load_from_file(sys.argv[1].encode(), chosen)
context = l.llama_init_from_model(model, l.llama_context_default_params())
for count in (40, 1):
    tokens = (l.llama_token * count)()
    batch = l.llama_batch_get_one(tokens, count)
    assert l.llama_decode(context, batch) == 0
"""


def _survives(gguf: Path, extra: bool) -> bool:
    """Return whether a process of its own can run a file, with its special kernels or without."""
    command = [sys.executable, "-c", _TRIAL, str(gguf), str(extra)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
