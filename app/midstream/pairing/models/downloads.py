"""Published models for the screen: the catalogue, and a download as a child process.

The child is ``midstream models get``; it asks the hub, checks what comes and tries the model.
Ending it loses nothing: what has come is kept, and the next download goes on from there.
"""

from __future__ import annotations

import json
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from typing import Any

from midstream import processes
from midstream.errors import UnavailableError
from midstream.hub.published import PublishedModel, published_models
from midstream.resources import free_disk, model_places


def downloadable() -> list[PublishedModel]:
    """The models of the catalogue that are not installed, smallest first (blocking)."""
    own = model_places()[0]
    return [model for model in published_models() if not (own / model.name).exists()]


def what_it_takes(model: PublishedModel) -> str:
    """A sentence on what downloading a model means (blocking)."""
    free = free_disk(model_places()[0])
    return (
        f"{model.name} is {model.size / 1e6:,.0f} MB from {model.repository}, licence "
        f"{model.license}; it takes some {model.memory / 1e9:.1f} GB of memory, and "
        f"{free / 1e9:,.0f} GB of disk are free."
    )


async def download_model(name: str, told: Callable[[float], None]) -> str:
    """Download and install a model of the catalogue.

    Args:
        name: Which one.
        told: Told how much of it is there, from 0 to 1.

    Returns:
        What does not work about the installed model; ``""`` where all does.

    Raises:
        UnavailableError: The download has failed; its sentence says why and what to do.
    """
    command = ("midstream", "models", "get", name, "--yes", "--json")
    try:
        process = await processes.start_python(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, limit=(1 << 16)
        )
    except OSError as error:
        raise UnavailableError(f"The download cannot be started: {error}.") from error
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            event: dict[str, Any] = json.loads(line)
            if "error" in event:
                raise UnavailableError(event["error"]["message"])
            if event.get("event") == "progress":
                told(event["done"] / max(1, event["of"]))
            elif event.get("event") == "installed":
                return str(event["fault"])
    finally:
        await processes.end(process)
    raise UnavailableError(f"The download of {name} has ended early; begin it again to go on.")
