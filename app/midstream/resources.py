"""Where the files that ship with Midstream lie, themes and models; how a path is told.

In an installed wheel they are inside the package (``midstream/_data``); in a source checkout
they are the top-level folders ``themes/`` and ``models/``. Nobody else needs to know which of
the two is the case.
"""

from __future__ import annotations

from pathlib import Path

from midstream.errors import UnavailableError

_PACKAGE = Path(__file__).resolve().parent


def _data(name: str) -> Path:
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / name


def themes_dir() -> Path:
    """Return the folder with one TOML file per shipped theme."""
    return _data("themes")


def models_dir() -> Path:
    """Return the folder that holds one sub-folder per shipped model."""
    return _data("models")


def model_folders() -> list[Path]:
    """Return the shipped model folders (those with a ``midstream.toml``), by name."""
    return sorted(path.parent for path in models_dir().glob("*/midstream.toml"))


def default_model() -> Path:
    """Return the model folder that is used when no other is configured.

    Raises:
        UnavailableError: The installation holds no model folder.
    """
    folders = model_folders()
    if not folders:
        raise UnavailableError(
            f"No model is installed in {models_dir()}; reinstall Midstream or name a model folder "
            "with --model."
        )
    return folders[0]


def tilde(path: Path) -> str:
    """A path as people write it: ``~/notes`` for what lies in their home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)
