"""The confidence in a response: strings in its standard metadata, no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_serving_sdk import validate

from midstream.engine.types import FinishReason, GenerateRequest, Piece, Usage
from midstream.serving.replay import ReplayModel
from tests.helpers.wire import peer, running


class Calibrated(ReplayModel):
    """A scripted model that says how sure it was."""

    @property
    def facts(self) -> dict[str, str]:
        """The threshold that clients see."""
        return {"confidence_threshold": "0.6"}

    def __init__(self, confidence: float | None) -> None:
        super().__init__("one two three")
        self._confidence = confidence

    def start(self, request: GenerateRequest) -> Told:
        return Told(self._confidence)


class Told:
    """One answer of it."""

    def __init__(self, confidence: float | None) -> None:
        self.usage = Usage(input_tokens=3)
        self.finish_reason: FinishReason | None = None
        self._told = confidence

    def __iter__(self) -> Iterator[Piece]:
        yield Piece("one", 1)
        self.finish_reason = FinishReason.STOP
        self.usage.confidence = self._told

    def stop(self) -> None:
        """It ends by itself."""


@pytest.mark.parametrize("confidence", [0.123456, 0.9, None])
async def test_it_is_in_the_metadata_of_the_end(confidence: float | None) -> None:
    model = Calibrated(confidence)
    async with running(model) as port, peer(port) as client:
        await client.create()
        end = await client.terminal()
        assert end["type"] == "response.completed"
        metadata = end["response"]["metadata"]
        assert metadata["midstream.confidence_threshold"] == "0.6"
        if confidence is None:
            assert "midstream.confidence" not in metadata
        else:
            assert metadata["midstream.confidence"] == f"{confidence:.3f}"
        assert all(isinstance(value, str) for value in metadata.values())
        begun = client.seen[0]["response"]["metadata"]
        assert "midstream.confidence" not in begun
        validate(client.seen)
