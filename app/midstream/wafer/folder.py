"""Models from a folder: the ONNX graph that ``genai_config.json`` names, any ONNX graph, or
``config.json`` alone.

A graph says more than a configuration (fusions, precisions, operators nobody priced), so it is
preferred; a Hugging Face folder without one is described by the fields of its ``config.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from midstream.wafer.errors import ModelUnavailableError, WaferUsageError
from midstream.wafer.onnx_shape import workload_from_onnx
from midstream.wafer.operators import Workload, workload_of
from midstream.wafer.shape import LatentAttention, ModelShape

Json = dict[str, Any]


def onnx_file_of(folder: Path) -> Path | None:
    """The decoder graph in a folder: what ``genai_config.json`` names, ``model.onnx``, or the only
    ``.onnx`` file.
    """
    genai = folder / "genai_config.json"
    if genai.is_file():
        decoder = cast("Json", _read(genai).get("model", {})).get("decoder", {})
        named = folder / str(decoder.get("filename", "model.onnx"))
        if named.is_file():
            return named
    for candidate in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
        if candidate.is_file():
            return candidate
    graphs = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    return graphs[0] if graphs else None


def workload_from_folder(folder: Path) -> Workload:
    """The operators of the model in a folder: from its graph when there is one, else from its
    configuration.

    Raises:
        ModelUnavailableError: The folder holds neither a usable configuration nor an ONNX graph.
    """
    graph = onnx_file_of(folder)
    if graph is not None:
        return workload_from_onnx(graph, folder.name)
    config = folder / "config.json"
    if config.is_file():
        content = _read(config)
        text = content.get("text_config", content)
        return workload_of(shape_from_config(cast("Json", text), folder.name, "config.json"))
    raise ModelUnavailableError(
        f"'{folder}' holds no ONNX graph and no config.json; give a model folder."
    )


def _read(path: Path) -> Json:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(f"'{path}' cannot be read as JSON; check the file.") from error
    if not isinstance(content, dict):
        raise ModelUnavailableError(f"'{path}' is not a JSON object; check the file.")
    return cast("Json", content)


def shape_from_config(config: Json, name: str, source: str) -> ModelShape:
    """A shape from the fields of a Hugging Face configuration.

    Raises:
        ModelUnavailableError: A needed field is missing.
    """
    try:
        hidden = int(config["hidden_size"])
        heads = int(config["num_attention_heads"])
        layers = int(config["num_hidden_layers"])
        vocab = int(config["vocab_size"])
        ffn = int(config.get("intermediate_size") or 4 * hidden)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelUnavailableError(f"The {source} of '{name}' lacks the field {error}.") from error
    latent = None
    if config.get("kv_lora_rank"):
        latent = LatentAttention(
            query_rank=int(config.get("q_lora_rank") or hidden),
            kv_rank=int(config["kv_lora_rank"]),
            rope_dim=int(config.get("qk_rope_head_dim", 64)),
            nope_dim=int(config.get("qk_nope_head_dim", 128)),
            value_dim=int(config.get("v_head_dim", 128)),
        )
    experts = int(
        config.get("num_local_experts")
        or config.get("num_experts")
        or config.get("n_routed_experts")
        or 0
    )
    expert_ffn = int(config.get("moe_intermediate_size") or (ffn if experts else 0))
    shared = int(config.get("shared_expert_intermediate_size") or 0)
    shared = shared or int(config.get("n_shared_experts") or 0) * expert_ffn
    window = int(config.get("sliding_window") or 0) if config.get("use_sliding_window", True) else 0
    try:
        return ModelShape(
            name=name,
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or hidden // heads),
            ffn=ffn,
            vocab=vocab,
            gated=config.get("hidden_act", "silu") not in ("gelu", "gelu_new", "relu"),
            tied=bool(config.get("tie_word_embeddings", False)),
            experts=experts,
            experts_active=int(
                config.get("num_experts_per_tok") or config.get("experts_per_token") or 1
            )
            if experts
            else 0,
            expert_ffn=expert_ffn if experts else 0,
            shared_ffn=shared if experts else 0,
            dense_layers=int(config.get("first_k_dense_replace") or 0) if experts else 0,
            moe_every=int(
                config.get("interleave_moe_layer_step") or config.get("decoder_sparse_step") or 1
            ),
            window=window,
            full_every=_full_every(config),
            latent=latent,
            source=source,
        )
    except WaferUsageError as error:
        raise ModelUnavailableError(str(error)) from error


def _full_every(config: Json) -> int:
    """Period of full-attention layers among windowed ones; 0 means every layer has the window."""
    types = config.get("layer_types")
    if isinstance(types, list) and "full_attention" in types:
        return cast("list[str]", types).index("full_attention") + 1
    return int(config.get("sliding_window_pattern") or 0)
