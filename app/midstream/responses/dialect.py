"""The kinds of endpoints, with one record for everything in which they differ.

Only what is documented or was observed. Adding a kind means a name in ``EndpointKind`` and a record
in ``DIALECTS``; settings, pages, ``doctor`` and the client read the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

EndpointKind = Literal[
    "local", "openai", "anthropic", "gemini", "xai", "azure", "mistral", "deepseek", "cerebras",
    "groq", "openrouter", "together", "fireworks", "vllm", "sglang", "llama-cpp", "lm-studio",
    "ollama", "mlx", "litellm", "custom",
]  # fmt: skip

WireApi = Literal["responses", "chat", "messages"]
"""OpenAI's Responses and Chat Completions, and Anthropic's Messages."""

StopRung = Literal["interrupt", "probe", "drop"]
"""How a response is stopped.

"interrupt": ``response.interrupt`` is known to work. "probe": try it once, and drop the connection
if it is refused or not answered. "drop": close the connection, which stops the response on every
server.
"""

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Values of ``reasoning.effort``, least first; which of them a model takes is up to the model."""


ANTHROPIC_VERSION: Final = "2023-06-01"
"""The one version of the Messages API; every request names it."""


@dataclass(frozen=True, slots=True)
class ChatQuirks:
    """How a server's Chat Completions differ from what all servers accept.

    Text of reasoning needs no entry: ``reasoning_content`` (DeepSeek, xAI, llama.cpp, SGLang, older
    vLLM), ``reasoning`` (Cerebras, Groq, OpenRouter, Ollama, MLX, vLLM since 0.12), content parts
    (Mistral) and a leading ``<think>`` are told from the answer alone.

    Attributes:
        limit: The field with the most tokens to write.
        instructions: The role of the instructions.
        effort: The field with the reasoning effort; "reasoning" is an object with an ``effort``.
        usage: Whether it has to be asked for token counts, and takes the question.
        custom_tools: Whether it has custom tools; elsewhere they are functions with one string.
    """

    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    instructions: Literal["system", "developer"] = "system"
    effort: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    usage: bool = True
    custom_tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the client may rely on at one kind of endpoint.

    Attributes:
        apis: The APIs that it may have, the best one first; where there are several, they are asked
            for in this order.
        websocket: Whether a WebSocket is tried before HTTP.
        chat: Its Chat Completions.
        bearer: Whether its key is sent as a bearer token; Anthropic's has a header of its own.
        stop: How to stop a response.
        connection_seconds: When to renew the connection between turns, before the server ends it.
        patience_seconds: How long a stopped response may take to end.
        stream_options: Sent with every request.
        midstream: It is a Midstream server: it takes a seed and corrections, keeps partial text,
            reads ahead, and leaves effort to the session.
        patch_tool: It streams the input of custom tools with a grammar.
        lists_models: ``GET /models/NAME`` is worth asking: it may be a Midstream server.
        wafers: It runs on wafers, so that its rate can be held against the simulated one.
        hosted: A company's service: it needs a model name, and its key needs an encrypted way.
        domains: Hosts that are of this kind; one that begins with a dot covers subdomains.
        url: Its address; "" where every account or machine has its own.
        key_env: Conventional variable for its key; None where no key is needed.
        key_path: What to GET to learn whether a key is good, where everybody gets the models.
        edit_format: How its models are asked to write edits; None leaves it to the server.
        efforts: Efforts to offer.
    """

    apis: tuple[WireApi, ...] = ("responses",)
    websocket: bool = False
    chat: ChatQuirks = field(default_factory=ChatQuirks)
    bearer: bool = True
    stop: StopRung = "drop"
    connection_seconds: float | None = None
    patience_seconds: float = 1.0
    stream_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    midstream: bool = False
    patch_tool: bool = False
    lists_models: bool = False
    wafers: bool = False
    hosted: bool = False
    domains: tuple[str, ...] = ()
    url: str = ""
    key_env: str | None = None
    key_path: str = "/models"
    edit_format: str | None = None
    efforts: tuple[str, ...] = ()


_OPENAI_CHAT: Final = ChatQuirks(
    limit="max_completion_tokens", instructions="developer", custom_tools=True
)
_ENGINE: Final[tuple[WireApi, ...]] = ("responses", "chat")
_NEW_LIMIT: Final = ChatQuirks(limit="max_completion_tokens")

DIALECTS: Final[Mapping[EndpointKind, Dialect]] = {
    "local": Dialect(
        websocket=True,
        stop="interrupt",
        # The server looks for a stop between two forward passes, also while it reads a prompt.
        patience_seconds=5.0,
        stream_options={"midstream_tokens": True},
        midstream=True,
        lists_models=True,
        url="ws://127.0.0.1:8042/v1",
        efforts=("low", "medium", "high", "xhigh"),
    ),
    "openai": Dialect(
        apis=("responses", "chat"),
        websocket=True,
        chat=_OPENAI_CHAT,
        # Whether the public endpoint takes an interrupt is not documented. Limit 60 minutes.
        stop="probe",
        connection_seconds=55 * 60,
        stream_options={"include_obfuscation": False},
        patch_tool=True,
        hosted=True,
        domains=("api.openai.com",),
        url="wss://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        edit_format="v4a",
        efforts=EFFORTS,
    ),
    "anthropic": Dialect(
        # Its Chat Completions are meant for comparisons and hide reasoning and caching.
        apis=("messages",),
        bearer=False,
        hosted=True,
        domains=("api.anthropic.com",),
        url="https://api.anthropic.com/v1",
        key_env="ANTHROPIC_API_KEY",
        edit_format="search-replace",
        efforts=("low", "medium", "high", "xhigh", "max"),
    ),
    "gemini": Dialect(
        apis=("chat",),
        hosted=True,
        domains=("generativelanguage.googleapis.com",),
        url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env="GEMINI_API_KEY",
        edit_format="search-replace",
        efforts=("none", "minimal", "low", "medium", "high"),
    ),
    "xai": Dialect(
        apis=("responses", "chat"),
        websocket=True,
        chat=_NEW_LIMIT,
        connection_seconds=23 * 60,  # Limit 25 minutes.
        hosted=True,
        domains=("api.x.ai",),
        url="wss://api.x.ai/v1",
        key_env="XAI_API_KEY",
        edit_format="search-replace",
    ),
    "azure": Dialect(
        apis=("responses", "chat"),
        websocket=True,
        chat=_OPENAI_CHAT,
        connection_seconds=55 * 60,
        patch_tool=True,
        hosted=True,
        domains=(".openai.azure.com", ".services.ai.azure.com"),
        key_env="AZURE_OPENAI_API_KEY",
        edit_format="v4a",
        efforts=EFFORTS,
    ),
    "mistral": Dialect(
        apis=("chat",),
        chat=ChatQuirks(usage=False),  # It counts unasked and refuses fields it does not know.
        hosted=True,
        domains=("api.mistral.ai", "codestral.mistral.ai"),
        url="https://api.mistral.ai/v1",
        key_env="MISTRAL_API_KEY",
        edit_format="search-replace",
        efforts=("none", "low", "medium", "high"),
    ),
    "deepseek": Dialect(
        apis=("chat",),
        hosted=True,
        domains=("api.deepseek.com",),
        url="https://api.deepseek.com/v1",
        key_env="DEEPSEEK_API_KEY",
        edit_format="search-replace",
        efforts=("high", "max"),
    ),
    "cerebras": Dialect(
        apis=("chat",),
        chat=_NEW_LIMIT,
        wafers=True,
        hosted=True,
        domains=("api.cerebras.ai",),
        url="https://api.cerebras.ai/v1",
        key_env="CEREBRAS_API_KEY",
        edit_format="search-replace",
        efforts=("low", "medium", "high"),
    ),
    "groq": Dialect(
        apis=("chat",),  # Its Responses API is a beta.
        chat=_NEW_LIMIT,
        hosted=True,
        domains=("api.groq.com",),
        url="https://api.groq.com/openai/v1",
        key_env="GROQ_API_KEY",
        edit_format="search-replace",
        efforts=("low", "medium", "high"),
    ),
    "openrouter": Dialect(
        apis=("chat",),  # Its Responses API is a beta.
        chat=ChatQuirks(effort="reasoning"),
        hosted=True,
        domains=("openrouter.ai",),
        url="https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY",
        key_path="/key",
        edit_format="search-replace",
        efforts=("none", "minimal", "low", "medium", "high", "xhigh"),
    ),
    "together": Dialect(
        apis=("chat",),  # It supports Responses and Messages for some models only.
        hosted=True,
        domains=("api.together.ai", "api.together.xyz"),
        url="https://api.together.ai/v1",
        key_env="TOGETHER_API_KEY",
        edit_format="search-replace",
        efforts=("low", "medium", "high"),
    ),
    "fireworks": Dialect(
        apis=("chat", "responses"),
        hosted=True,
        domains=("api.fireworks.ai",),
        url="https://api.fireworks.ai/inference/v1",
        key_env="FIREWORKS_API_KEY",
        edit_format="search-replace",
        efforts=("low", "medium", "high"),
    ),
    # Engines: what they answer decides, since older versions have Chat Completions only.
    "vllm": Dialect(apis=_ENGINE, url="http://127.0.0.1:8000/v1"),
    "sglang": Dialect(apis=_ENGINE, url="http://127.0.0.1:30000/v1"),
    "llama-cpp": Dialect(apis=_ENGINE, url="http://127.0.0.1:8080/v1"),
    "lm-studio": Dialect(apis=_ENGINE, url="http://127.0.0.1:1234/v1"),
    "ollama": Dialect(apis=_ENGINE, url="http://127.0.0.1:11434/v1"),
    "mlx": Dialect(apis=("chat",), url="http://127.0.0.1:8080/v1"),
    "litellm": Dialect(apis=_ENGINE, url="http://127.0.0.1:4000/v1"),
    "custom": Dialect(
        apis=("responses", "chat", "messages"),
        websocket=True,
        stop="probe",
        connection_seconds=55 * 60,
        lists_models=True,
    ),
}


def kind_of(url: str) -> EndpointKind:
    """The kind of endpoint at an address, by its host."""
    host = urlsplit(url).hostname or ""
    for kind, dialect in DIALECTS.items():
        for domain in dialect.domains:
            if host == domain or (domain.startswith(".") and host.endswith(domain)):
                return kind
    return "custom"
