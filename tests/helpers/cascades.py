"""A larger model of a pair that is loaded already, or of which the test says when it is."""

from __future__ import annotations

from concurrent.futures import Future

from midstream.engine.cascade import BackgroundModel
from midstream.engine.model import OnnxModel


class Loaded(BackgroundModel):
    """Loads nothing; `at_once` is whether the model is there from the beginning."""

    def __init__(self, model: OnnxModel, *, at_once: bool = True) -> None:
        self.folder = model.folder
        self.loaded: Future[OnnxModel] = Future()
        if at_once:
            self.loaded.set_result(model)
