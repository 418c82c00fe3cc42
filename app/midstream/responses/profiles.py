"""Endpoints as a user configures them: address, model, key and price.

Holds facts and finds the key; it reads no configuration file, opens no connection and never keeps
or shows a key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from midstream.errors import UsageError
from midstream.responses.dialect import DIALECTS, Dialect, EndpointKind, kind_of
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.keys import read_key
from midstream.responses.model_info import ModelInfo

BUILT_IN: Final = "built-in"
"""What a person calls the server that Midstream starts itself; no profile has this name."""
KNOWN_NAMES: Final[tuple[EndpointKind, ...]] = tuple(
    kind for kind, dialect in DIALECTS.items() if dialect.url
)
"""Names of services and engines that need no table: each kind that has a usual address."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Attributes:
        input: For tokens of the prompt.
        output: For generated tokens, reasoning included.
        cached: For those tokens of the prompt that the server had in its cache.
    """

    input: float
    output: float
    cached: float

    def of(self, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Cost of an answer in dollars; cached tokens are part of the input."""
        fresh = max(0, input_tokens - cached_tokens)
        prompt = fresh * self.input + min(cached_tokens, input_tokens) * self.cached
        return (prompt + output_tokens * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class Profile:
    """One endpoint with one model. What is ``None`` or empty is not known.

    Attributes:
        name: What a person calls it; ``""`` for an address that was given alone.
        kind: Whose dialect it speaks.
        url: Its address up to and including the version.
        model: The model to ask for.
        key_env: Environment variable that holds its key.
        keyring: Service under which the system's keyring holds its key, for the user ``name``.
        edit_format: How its models are asked to write edits.
        context: Tokens that the model reads and writes at most.
        price: What tokens cost.
        efforts: Efforts to offer, least first.
        transport: How it is spoken to.
    """

    name: str
    kind: EndpointKind
    url: str
    model: str = ""
    key_env: str | None = None
    keyring: str | None = None
    edit_format: str | None = None
    context: int | None = None
    price: Price | None = None
    efforts: tuple[str, ...] = ()
    transport: Transport = "auto"

    @classmethod
    def at(cls, url: str, model: str = "", key_env: str | None = None) -> Profile:
        """The profile for a bare address."""
        return cls._of("", kind_of(url), url, model, key_env)

    @classmethod
    def known(cls, name: str) -> Profile | None:
        """The profile of a service or engine that has one usual address, such as ``openai``."""
        kinds: dict[str, EndpointKind] = {kind: kind for kind in KNOWN_NAMES}
        kind = kinds.get(name)
        return None if kind is None else cls._of(kind, kind, DIALECTS[kind].url)

    @classmethod
    def _of(
        cls, name: str, kind: EndpointKind, url: str, model: str = "", key_env: str | None = None
    ) -> Profile:
        defaults = DIALECTS[kind]
        return cls(
            name,
            kind,
            url,
            model,
            key_env or defaults.key_env,
            edit_format=defaults.edit_format,
            efforts=defaults.efforts,
        )

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.kind]

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        return Endpoint(self.url, None, "").loopback

    def configured(self, model: ModelInfo) -> ModelInfo:
        """The server's model info, overridden by what this profile configures."""
        return replace(
            model,
            declared_format=self.edit_format or model.declared_format,
            context_length=self.context or model.context_length,
        )

    def endpoint(self, environ: Mapping[str, str] = os.environ) -> Endpoint:
        """The endpoint with its key, from the environment or else from the keyring.

        Raises:
            UsageError: The key or the model's name is missing, or the key would travel in the
                open.
        """
        called = f"the endpoint {self.name}" if self.name else self.url
        if not self.names_model:
            where = f"endpoints.{self.name}.model" if self.name else "endpoint.model"
            raise UsageError(
                f"No model is named for {called}; pass --model, choose one on the models page, or "
                f"set {where}."
            )
        token = self._key(called, environ)
        endpoint = Endpoint(self.url, token, self.model, self.kind, self.transport)
        if self.dialect.hosted and not (endpoint.secure or endpoint.loopback):
            raise UsageError(f"The key of {called} needs an address with wss:// or https://.")
        return endpoint

    @property
    def names_model(self) -> bool:
        """Whether its server can know which model is meant; engines have one of their own."""
        return bool(self.model) or not self.dialect.hosted

    def has_key(self, environ: Mapping[str, str] = os.environ) -> bool | None:
        """Whether the key's variable is set; ``None`` where the keyring has it or none is needed.

        The keyring is not asked, because that can open a window.
        """
        if self.key_env is not None and environ.get(self.key_env):
            return True
        return None if self.keyring is not None or self.key_env is None else False

    def _key(self, called: str, environ: Mapping[str, str]) -> str | None:
        key = environ.get(self.key_env, "").strip() if self.key_env is not None else ""
        if not key and self.keyring is not None:
            key = read_key(self.keyring, self.name, called)
        if key:
            if not key.isascii() or not key.isprintable() or " " in key:
                where = f"in {self.key_env} " if self.key_env is not None else ""
                raise UsageError(
                    f"The key {where}of {called} contains a space or an invalid character; "
                    "set it again."
                )
            return key
        if self.key_env is not None:
            raise UsageError(
                f"{self.key_env} is not set, and {called} needs its key from there; "
                "export it, or choose the model on the models page and type the key there."
            )
        return None
