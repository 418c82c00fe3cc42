"""Loading a model folder, in the order that is soonest done.

ONNX Runtime packs weights in a thread for most of the time that loading takes. What else there is
to import and to read is done meanwhile, so this module imports little itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.engine.folder import graph_files, read_folder
from midstream.engine.graph import Opening

if TYPE_CHECKING:
    from midstream.engine.types import TextModel


def load_model(
    folder: Path,
    *,
    provider: str = "cpu",
    threads: int | None = None,
    kept_bytes: int = 0,
    meanwhile: Callable[[], object] | None = None,
) -> TextModel:
    """Load a model folder in ONNX Runtime GenAI, Optimum or transformers.js layout.

    Its memory is arranged soon, in the background.

    Args:
        folder: The folder.
        provider: Where it runs; see ``graph.PROVIDERS``.
        threads: Threads inside one operator; None for the cores this process may use.
        kept_bytes: Bytes on disk for what it has read; see ``OnnxModel``.
        meanwhile: Called while the graph is opened.

    Raises:
        ModelFolderError, UnavailableError: As in ``OnnxModel``.
    """
    described = read_folder(folder)
    opening = Opening(described, provider=provider, threads=threads)
    from midstream.engine.model import OnnxModel
    from midstream.engine.spare_memory import arrange_later

    if meanwhile is not None:
        meanwhile()
    model = OnnxModel(described, opening=opening, kept_bytes=kept_bytes)
    arrange_later(graph_files(described))
    return model
