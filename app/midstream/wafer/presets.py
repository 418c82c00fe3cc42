"""Named model shapes from ``data/models.toml``, found under the many spellings people use for
them.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.shape import LatentAttention, ModelShape

_SAME_SHAPE = {
    "r1distillllama70b": "llama3.3-70b",
    "deepseekr1distillllama70b": "llama3.3-70b",
    "llama370b": "llama3.1-70b",
    "codellama34": "codellama-34b",
    "mistrallarge": "mistral-large-2",
    "deepseekr1": "deepseek-v3",
    "kimik2": "kimi-k2.6",
    "kimik25": "kimi-k2.6",
    "glm45": "glm-4.7",
    "glm46": "glm-4.7",
    "gpt53codexspark": "spark-like",
    "codexspark": "spark-like",
}
"""Models whose shape equals that of a preset under another name."""

_NOISE = re.compile(
    r"(instruct|chat|thinking|preview|base|turbo|versatile|(17b)?(16|128)e|(?<=480b)a35b|it|hf|2507|a12b)$"
)


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = resources.files("midstream.wafer").joinpath("data/models.toml").read_text("utf-8")
    return tomllib.loads(text)


def preset_names() -> list[str]:
    """Names of all presets."""
    return list(_table())


def _plain(name: str) -> str:
    """A spelling without vendor, punctuation and variant suffixes."""
    text = name.strip().lower().rsplit("/", 1)[-1]
    text = re.sub(r"[\s._-]", "", text).removeprefix("meta").removeprefix("openai")
    while (shorter := _NOISE.sub("", text)) != text:
        text = shorter
    return text


@cache
def _by_plain_name() -> dict[str, str]:
    names = {_plain(name): name for name in _table()}
    names["qwen3235b"] = "qwen3-235b-a22b"
    return names | _SAME_SHAPE


@cache
def preset(name: str) -> ModelShape:
    """The shape of a named model; ``Llama-3.1-8B-Instruct`` and ``llama3.1-8b`` are the same.

    Raises:
        WaferUsageError: No preset has that name.
    """
    key = name if name in _table() else _by_plain_name().get(_plain(name))
    if key is None:
        raise WaferUsageError(
            f"Model '{name}' is neither a preset nor a file; presets are {', '.join(_table())}, or "
            "give the path of an ONNX file or model folder."
        )
    entry = dict(_table()[key])
    latent = entry.pop("latent", None)
    return ModelShape(name=key, latent=LatentAttention(**latent) if latent else None, **entry)
