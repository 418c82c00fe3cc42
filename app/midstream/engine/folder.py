"""Model folders: the graph file, the context length, the end tokens and the prompt style.

Three layouts are known: ONNX Runtime GenAI (``genai_config.json``), Optimum (``model.onnx`` or
``decoder_model_merged.onnx`` beside ``config.json``) and transformers.js (``onnx/model*.onnx``). An
optional ``midstream.toml`` says what the configuration files cannot: prompt style, edit format,
drafting, facts. Nothing is loaded here but small text files; ``graph`` looks into the graph itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from midstream.errors import UnavailableError
from midstream.resources import MAX_CONFIG_BYTES, read_json, read_small, read_toml

GRAPH_ORDER = (
    "model_q4.onnx",
    "model_int8.onnx",
    "model_quantized.onnx",
    "model_uint8.onnx",
    "model_q4f16.onnx",
    "model.onnx",
    "decoder_model_merged.onnx",
    "decoder_model_merged_quantized.onnx",
    "model_fp16.onnx",
)
"""Which of several graphs in a folder is taken on a CPU: the cheapest to run first."""

EDIT_PROMPT = "edit-rewrite"
"""Prompt style of models that rewrite regions and do nothing else (``rewrite_codec``)."""
PROMPTS = (EDIT_PROMPT, "chat")
MAX_NAME_LENGTH = 100
"""Characters of a model's name: it stands in lists and sentences."""


class ModelFolderError(UnavailableError):
    """A model folder cannot be used; the sentence names the file or the graph input at fault."""

    code = "model_folder"


@dataclass(frozen=True, slots=True)
class Drafting:
    """Most tokens that are proposed at once; ``drafting.DraftLength`` chooses how many."""

    most: int = 32


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """Limits on requests to a model that are below its context length; None means no limit.

    Attributes:
        prompt: Most tokens of a prompt.
        output: Most tokens of an answer.
    """

    prompt: int | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The parameters by which a model's answers are judged; see ``confidence``.

    Attributes:
        threshold: An answer with a lower probability of being right is flagged.
        bias: Constant of the logistic regression.
        weights: Its weights, by the name of a feature.
    """

    threshold: float
    bias: float
    weights: Mapping[str, float]


MAX_TOKENIZER_BYTES: Final = 200_000_000
"""Bytes of a ``tokenizer.json``; the largest that are published have a sixth of that."""
MAX_CONTEXT: Final = 2**31 - 1
"""Tokens of a context; a larger number in a configuration is invalid."""
CHAT_CALIBRATION: Final = Calibration(0.65, 0.1965, {"doubt": -1.8466, "size": 0.9696})
"""How rewrites of chat models are judged whose folder does not say.

Fitted on the answers of Qwen2.5-Coder-0.5B and 1.5B to the first seventy requests of ``midstream
models check --edits``; ``docs/benchmarks.md`` has what it flags, by folds of requests.
"""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """The KV cache's shape in the configuration; unused if the graph fixes its own sizes.

    Attributes:
        layers: How many layers have keys and values.
        heads: key/value heads of a layer.
        width: Numbers that a head keeps of one token.
        queries: Query heads of a layer.
    """

    layers: int
    heads: int
    width: int
    queries: int

    def row_bytes(self, element: int) -> int:
        """Bytes of one token in the cache, for elements of the given size in bytes."""
        return 2 * self.layers * self.heads * self.width * element


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The contents of a model folder.

    Attributes:
        path: The folder.
        name: The model's name in requests.
        layout: "genai", "optimum" or "transformers.js".
        graph: The ONNX file.
        tokenizer: The tokenizer.json.
        context_length: Most tokens of prompt and answer together.
        eos_ids: Tokens that end a text.
        prompt: One of ``PROMPTS``.
        input_names, output_names: ``genai_config.json``'s name table ("%d" stands for the layer);
        empty otherwise.
        shares_cache: Whether past and present may be one buffer; None where no file says so.
        drafting: How much is drafted; None for no drafts.
        limits: Limits below the context's.
        confidence: How answers are judged; None where the folder does not say.
        cache_shape: Sizes of the cache; None where the configuration does not say enough.
        plain_attention: Whether no file says that attention is cut to a window, or that positions
            mean something else in longer texts.
        facts: Strings for clients.
        chat_template: jinja2 text, None if the folder has none.
        special_tokens: bos_token, eos_token... as text, for the template.
    """

    path: Path
    name: str
    layout: str
    graph: Path
    tokenizer: Path
    context_length: int
    eos_ids: frozenset[int]
    prompt: str
    input_names: Mapping[str, str] = field(default_factory=dict[str, str])
    output_names: Mapping[str, str] = field(default_factory=dict[str, str])
    shares_cache: bool | None = None
    drafting: Drafting | None = Drafting()
    limits: TokenLimits = TokenLimits()
    confidence: Calibration | None = None
    cache_shape: CacheShape | None = None
    plain_attention: bool = True
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    chat_template: str | None = None
    special_tokens: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_edit_model(self) -> bool:
        """Whether it rewrites regions and does nothing else."""
        return self.prompt == EDIT_PROMPT

    @property
    def row_bytes(self) -> int | None:
        """Bytes of cache that one token takes, estimated without the graph; None if not known."""
        # Exporters say in the graph's name whether activations and cache are halves.
        halves = "f16" in self.graph.stem or "fp16" in self.graph.stem
        return self.cache_shape and self.cache_shape.row_bytes(2 if halves else 4)


def read_folder(path: Path) -> ModelFolder:
    """Read a model folder's configuration, whatever is in it.

    Raises:
        ModelFolderError: A file is missing or does not say what is needed.
    """
    try:
        return _read_folder(path)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ModelFolderError(f"The configuration in {path} is not understood ({why}).") from error


def _read_folder(path: Path) -> ModelFolder:
    if not path.is_dir():
        raise ModelFolderError(
            f"There is no model folder at {path}; name one with --model or see `midstream models`."
        )
    card = _read_toml(path / "midstream.toml")
    genai = _read_json(path / "genai_config.json")
    config = _read_json(path / "config.json")
    texts = _read_json(path / "tokenizer_config.json")
    model: dict[str, Any] = _table(genai, "model", path / "genai_config.json")
    decoder: dict[str, Any] = _table(model, "decoder", path / "genai_config.json")
    _refuse_more_than_text(path, model, config)
    layout, graph = _find_graph(path, card, decoder)
    tokenizer = path / "tokenizer.json"
    if not tokenizer.is_file():
        raise ModelFolderError(f"{tokenizer} is missing; a model folder needs its tokenizer.")
    if (size := tokenizer.stat().st_size) > MAX_TOKENIZER_BYTES:
        raise ModelFolderError(
            f"{tokenizer} has {size / 1e6:,.0f} MB, and no tokenizer has more than "
            f"{MAX_TOKENIZER_BYTES / 1e6:.0f} MB; copy the model's original file again."
        )
    template = _chat_template(path, texts)
    prompt = str(card.get("prompt", "chat"))
    if prompt not in PROMPTS:
        raise ModelFolderError(
            f'{path / "midstream.toml"} asks for prompt = "{prompt}"; known are '
            f"{', '.join(sorted(PROMPTS))}."
        )
    name = "".join(filter(str.isprintable, str(card.get("name", path.name))))[:MAX_NAME_LENGTH]
    context = _context_length(path, model, config)
    confidence = _confidence(_table(card, "confidence", path / "midstream.toml"), path)
    if confidence is None and prompt == "chat":
        confidence = CHAT_CALIBRATION
    search: dict[str, Any] = _table(genai, "search", path / "genai_config.json")
    shares = search.get("past_present_share_buffer")
    return ModelFolder(
        path=path,
        name=name,
        layout=layout,
        graph=graph,
        tokenizer=tokenizer,
        context_length=context,
        eos_ids=_eos_ids(path, model, config),
        prompt=prompt,
        input_names=_table(decoder, "inputs", path / "genai_config.json"),
        output_names=_table(decoder, "outputs", path / "genai_config.json"),
        shares_cache=shares if isinstance(shares, bool) else None,
        drafting=_drafting(_table(card, "drafting", path / "midstream.toml"), path),
        limits=_limits(_table(card, "limits", path / "midstream.toml"), path),
        confidence=confidence,
        cache_shape=_cache_shape(decoder or config),
        plain_attention=_plain_attention(decoder) and _plain_attention(config),
        facts=_facts(card, prompt, context, confidence),
        chat_template=template,
        special_tokens=_special_tokens(texts),
    )


def graph_files(folder: ModelFolder) -> list[Path]:
    """The graph, and the files beside it that look like its external data."""
    graph = folder.graph
    beside = {*graph.parent.glob(f"{graph.name}?data*"), *graph.parent.glob(f"{graph.stem}.data*")}
    return [graph, *sorted(beside)]


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = read_json(path, MAX_CONFIG_BYTES)
    except (OSError, ValueError) as error:
        raise ModelFolderError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ModelFolderError(f"{path} should hold one JSON object.")
    return cast("dict[str, Any]", value)


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return read_toml(path)
    except (OSError, ValueError) as error:
        raise ModelFolderError(f"{path} cannot be read as TOML: {error}.") from error


def _table(table: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    value: object = table.get(key, {})
    if not isinstance(value, dict):
        raise ModelFolderError(f'{path} should hold a table "{key}".')
    return cast("dict[str, Any]", value)


def _drafting(table: Mapping[str, Any], path: Path) -> Drafting | None:
    if not table.get("enabled", True):
        return None
    most = table.get("most", Drafting().most)
    if not (isinstance(most, int) and most > 0):
        raise ModelFolderError(
            f"{path / 'midstream.toml'}: most, in [drafting], should be a whole number above 0."
        )
    return Drafting(most)


def _limits(table: Mapping[str, Any], path: Path) -> TokenLimits:
    limits: list[int | None] = []
    for key in ("max_prompt_tokens", "max_output_tokens"):
        value = table.get(key)
        if value is not None and not (isinstance(value, int) and value > 0):
            raise ModelFolderError(f"{path / 'midstream.toml'}: {key} should be a whole number.")
        limits.append(value)
    return TokenLimits(*limits)


def _confidence(table: Mapping[str, Any], path: Path) -> Calibration | None:
    if not table:
        return None
    threshold, bias = table.get("threshold"), table.get("bias")
    weights: object = table.get("weights")
    if not isinstance(weights, dict):
        weights = {"": None}
    named = cast("dict[str, object]", weights)
    if not all(_is_number(value) for value in (threshold, bias, *named.values())):
        raise ModelFolderError(
            f"{path / 'midstream.toml'}: [confidence] should hold numbers: threshold, bias, and "
            "a table weights."
        )
    return Calibration(
        float(cast("float", threshold)),
        float(cast("float", bias)),
        {name: float(cast("float", value)) for name, value in named.items()},
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse_more_than_text(path: Path, model: dict[str, Any], config: dict[str, Any]) -> None:
    """Name what a text decoder does not have, before a missing file is reported instead."""
    kind = model.get("type", config.get("model_type", "unknown"))
    where = path / ("genai_config.json" if model else "config.json")
    parts = [part for part in ("encoder", "vision", "speech", "embedding") if part in model]
    if config.get("is_encoder_decoder"):
        parts = ["encoder"]
    if parts:
        raise ModelFolderError(
            f"{where} describes a model of type {kind} with {' and '.join(parts)} beside its "
            "decoder; Midstream runs plain text decoders only."
        )


def _find_graph(path: Path, card: dict[str, Any], decoder: dict[str, Any]) -> tuple[str, Path]:
    if (path / "genai_config.json").is_file():
        graph = path / _inside(path, str(decoder.get("filename", "model.onnx")))
        if not graph.is_file():
            raise ModelFolderError(f"{graph}, named by {path / 'genai_config.json'}, is missing.")
        return "genai", graph
    for layout, folder in (("transformers.js", path / "onnx"), ("optimum", path)):
        names = (_inside(path, str(card["graph"])),) if "graph" in card else GRAPH_ORDER
        found = [folder / name for name in names if (folder / name).is_file()]
        if not found:
            continue
        if not (path / "config.json").is_file():
            raise ModelFolderError(f"{path / 'config.json'} is missing; {found[0].name} needs it.")
        return layout, found[0]
    others = sorted(file.name for file in (*path.glob("*.onnx"), *path.glob("onnx/*.onnx")))
    hint = f'; if {" or ".join(others[:3])} is meant, say graph = "..." in midstream.toml'
    raise ModelFolderError(
        f"{path} holds no model: neither genai_config.json nor model.onnx nor onnx/model*.onnx"
        f"{hint if others else ''}."
    )


def _inside(path: Path, name: str) -> str:
    """The name of a file that lies in the folder; what was downloaded may name any."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ModelFolderError(f"{path} names a graph outside of itself: {name}.")
    return name


def _context_length(path: Path, model: dict[str, Any], config: dict[str, Any]) -> int:
    text_config: dict[str, Any] = _table(config, "text_config", path / "config.json")
    for table, key in (
        (model, "context_length"),
        (config, "max_position_embeddings"),
        (config, "n_positions"),
        (text_config, "max_position_embeddings"),
    ):
        value = table.get(key)
        if isinstance(value, int) and 1 < value <= MAX_CONTEXT:
            return value
    genai = (path / "genai_config.json").is_file()
    named = "model.context_length" if genai else "max_position_embeddings"
    where = path / ("genai_config.json" if genai else "config.json")
    raise ModelFolderError(f"{where} does not say how long a context may be ({named}).")


def _cache_shape(table: dict[str, Any]) -> CacheShape | None:
    heads = table.get("num_attention_heads")
    layers, width = table.get("num_hidden_layers"), table.get("hidden_size")
    kept = table.get("num_key_value_heads") or heads
    size = table.get("head_size") or table.get("head_dim")
    if size is None and isinstance(width, int) and isinstance(heads, int) and heads:
        size = width // heads
    if isinstance(layers, int) and isinstance(kept, int) and isinstance(size, int):
        return CacheShape(layers, kept, size, heads if isinstance(heads, int) else kept)
    return None


_STRETCHED = ("longrope", "su", "dynamic")
"""Kinds of rotary embedding whose angles depend on the length of the text."""


def _plain_attention(table: dict[str, Any]) -> bool:
    """Whether a table of a configuration names no window and no such embedding."""
    if table.get("sliding_window") and table.get("use_sliding_window", True):
        return False
    if isinstance(inner := table.get("text_config"), dict):
        return _plain_attention(cast("dict[str, Any]", inner))
    for key in ("rope_scaling", "rope_parameters"):
        if isinstance(scaling := table.get(key), dict):
            named = cast("dict[str, Any]", scaling)
            if named.get("rope_type", named.get("type")) in _STRETCHED:
                return False
    return True


def _eos_ids(path: Path, model: dict[str, Any], config: dict[str, Any]) -> frozenset[int]:
    generation = _read_json(path / "generation_config.json")
    ids: set[int] = set()
    for table in (model, generation, config):
        value = table.get("eos_token_id")
        values: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
        ids.update(item for item in values if isinstance(item, int))
    return frozenset(ids)


def _facts(
    card: dict[str, Any], prompt: str, context: int, confidence: Calibration | None
) -> dict[str, str]:
    facts = {str(k): str(v) for k, v in _table(card, "facts", Path("midstream.toml")).items()}
    for key in ("edit_format", "max_region_lines", "languages"):
        value: object = card.get(key)
        if isinstance(value, list):
            facts[key] = ",".join(str(item) for item in cast("list[object]", value))
        elif value is not None:
            facts[key] = str(value)
    if confidence is not None:
        facts["confidence_threshold"] = str(confidence.threshold)
    facts["prompt"] = prompt
    if prompt == "chat":  # The session writes the region in front of the instruction.
        facts.setdefault("region_first", "1")
    facts["context_length"] = str(context)
    return facts


def _chat_template(path: Path, texts: dict[str, Any]) -> str | None:
    file = path / "chat_template.jinja"
    if file.is_file():
        return read_small(file).decode("utf-8")
    value: object = texts.get("chat_template")
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        named = {
            str(item["name"]): str(item["template"])
            for item in cast("list[dict[str, Any]]", value)
            if "name" in item and "template" in item
        }
        return named.get("default")
    return None


def _special_tokens(texts: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in ("bos_token", "eos_token", "pad_token", "unk_token"):
        value: object = texts.get(key)
        if isinstance(value, dict):
            value = cast("dict[str, object]", value).get("content")
        if isinstance(value, str):
            found[key] = value
    return found
