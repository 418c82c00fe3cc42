"""Named model shapes from ``data/models.toml``, found under the many spellings people use for
them.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.shape import LatentAttention, ModelShape

_SAME_SHAPE = {
    "r1distill70b": "llama3.3-70b",
    "r1distillllama70b": "llama3.3-70b",
    "deepseekr1distill70b": "llama3.3-70b",
    "deepseekr1distillllama70b": "llama3.3-70b",
    "llama370b": "llama3.1-70b",
    "mistrallarge": "mistral-large-2",
    "deepseekr1": "deepseek-v3",
    "qwen3235b": "qwen3-235b-a22b",
    "qwen3480b": "qwen3-coder-480b",
    "qwen3coder": "qwen3-coder-480b",
    "kimik2": "kimi-k2.6",
    "kimik25": "kimi-k2.6",
    "glm45": "glm-4.7",
    "glm46": "glm-4.7",
    "spark": "spark-like",
    "codexspark": "spark-like",
    "gpt53codexspark": "spark-like",
}
"""Other names of models with a preset's shape, without punctuation and variant suffixes."""

_VENDORS = re.compile(r"^(meta|openai|zai|google|nvidia|deepseekai)(?=[a-z])")
_VARIANTS = re.compile(
    r"(instruct|chat|thinking|preview|base|turbo|versatile|hf|it|2507|0905|a35b|(17b)?(16|128)e)$"
)


_PRODUCT = re.compile(r"^(gemv|gemm)[-_ ]?(\d+)(k?)(?:[x×*](\d+)(k?))?$")


def matrix_of(name: str) -> tuple[int, int] | None:
    """Rows and columns of a product such as ``gemv-16384``, ``GEMV 16k`` or ``gemm-4096x1024``;
    None for other names.
    """
    plain = re.sub(r"\s*([x×*])\s*", r"\1", re.sub(r"[()]", "", name.strip().lower()))
    match = _PRODUCT.match(plain.replace(" ", "-"))
    if match is None:
        return None
    rows = int(match[2]) * (1024 if match[3] else 1)
    columns = int(match[4]) * (1024 if match[5] else 1) if match[4] else rows
    return rows, columns


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = resources.files("midstream.wafer").joinpath("data/models.toml").read_text("utf-8")
    return tomllib.loads(text)


def preset_names() -> list[str]:
    """Names of all presets."""
    return list(_table())


def _plain(name: str) -> str:
    """A spelling without vendor, punctuation, remarks in brackets and variant suffixes."""
    text = re.sub(r"\(.*?\)", "", name.strip().lower().rsplit("/", 1)[-1])
    text = _VENDORS.sub("", re.sub(r"[\s._:-]", "", text))
    while (shorter := _VARIANTS.sub("", text)) != text:
        text = shorter
    return text


@cache
def _by_plain_name() -> dict[str, str]:
    return {_plain(name): name for name in _table()} | _SAME_SHAPE


@cache
def preset(name: str) -> ModelShape:
    """The shape of a named model; ``Llama-3.1-8B-Instruct`` and ``llama3.1-8b`` are the same.

    Raises:
        WaferUsageError: No preset has that name.
    """
    key = name if name in _table() else _by_plain_name().get(_plain(name))
    if key is None:
        near = get_close_matches(_plain(name), _by_plain_name(), n=3, cutoff=0.7)
        known = ", ".join(dict.fromkeys(_by_plain_name()[match] for match in near) or _table())
        raise WaferUsageError(
            f"Model '{name}' is neither a preset nor a file; {'near' if near else 'the'} presets "
            f"are {known}, or give the path of an ONNX file or model folder."
        )
    entry = dict(_table()[key])
    latent = entry.pop("latent", None)
    return ModelShape(name=key, latent=LatentAttention(**latent) if latent else None, **entry)
