"""The model that a server process is to load, as plain values that can be passed to another
process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from midstream.errors import UsageError

if TYPE_CHECKING:
    from midstream.engine.types import TextModel
    from midstream.wafer.imitations import Imitation


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model, or a script that answers in its place.

    Attributes:
        folder: Model folder; None for the shipped model.
        replay: Replay script to answer from instead.
        provider: Execution provider of the engine.
        threads: Threads of the engine; None lets it choose.
        pace: Tokens per second at most; None for as fast as the model is.
        pacing: Machine and model whose simulated speed is imitated; see ``wafer.imitations``.
        cache_mb: Megabytes on disk for what chat models have read; 0 keeps nothing.
    """

    folder: Path | None = None
    replay: Path | None = None
    provider: str = "cpu"
    threads: int | None = None
    pace: float | None = None
    pacing: str = "off"
    cache_mb: int = 0

    @classmethod
    def from_json(cls, text: str) -> ModelSource:
        """Read what ``to_json`` wrote."""
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))

    def to_json(self) -> str:
        """The source as one argument of another process."""
        return msgspec.json.encode(self, enc_hook=str).decode()

    @property
    def name(self) -> str:
        """The model's name in requests, as far as known before loading."""
        if self.replay is not None:
            return "replay"
        if self.folder is not None:
            return self.folder.name
        from midstream.resources import default_model

        return default_model().name

    def load(self, meanwhile: Callable[[], object] | None = None) -> TextModel:
        """Load it.

        Args:
            meanwhile: Called while ONNX Runtime opens a model's graph, which leaves Python free.

        Raises:
            UserError: It does not load.
        """
        imitated = self._imitated()
        model = self._answering(meanwhile)
        if imitated is None:
            return model
        from midstream.serving.pace import PacedModel

        return PacedModel(model, imitated)

    def _imitated(self) -> Imitation | None:
        if self.pacing == "off":
            return None
        from midstream.wafer.errors import WaferError
        from midstream.wafer.imitations import imitation

        try:
            return imitation(self.pacing)
        except WaferError as error:
            raise UsageError(f"Pacing is not possible: {error}") from error

    def _answering(self, meanwhile: Callable[[], object] | None) -> TextModel:
        if self.replay is not None:
            from midstream.serving.replay import ReplayModel, ReplayScript

            return ReplayModel(ReplayScript.load(self.replay))
        from midstream.engine.loading import load_model
        from midstream.resources import default_model

        folder = default_model() if self.folder is None else self.folder
        model = load_model(
            folder,
            provider=self.provider,
            threads=self.threads,
            kept_bytes=self.cache_mb * 1_000_000,
            meanwhile=meanwhile,
        )
        if self.pace is None:
            return model
        from midstream.serving.pace import PacedModel

        return PacedModel(model, self.pace)
