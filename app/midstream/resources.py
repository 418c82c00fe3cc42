"""Locations of Midstream's own files: the configuration, and the themes and models that ship with
it.

In an installed wheel, themes and models are inside the package (``midstream/_data``); in a source
checkout they are the top-level folders ``themes/`` and ``models/``.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from midstream.errors import UnavailableError

MAX_SMALL_BYTES = 4_000_000
"""Bytes of a file with settings, notes or the like."""
MAX_CONFIG_BYTES = 64_000_000
"""Bytes of a configuration of a tokenizer, which may list all of its tokens."""
MAX_TEXT_BYTES = 20_000_000
"""Bytes of a file of code."""
MAX_PARTS = 400
"""Parts of a dotted key in a TOML file."""
_FLOAT = re.compile(r"(?<=[\s,\[=+-])\d+\.\d+(?=[\s,\]eE])")
_PACKAGE = Path(__file__).resolve().parent


def _data(name: str) -> Path:
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / name


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it that anybody may have made (blocking).

    A pipe is not waited for, and no device is read without end.  Links are followed.

    Raises:
        OSError: There is none, or it is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file


def read_small(path: Path, limit: int = MAX_SMALL_BYTES) -> bytes:
    """Bytes of a small file that anybody may have made (blocking).

    Raises:
        OSError: As ``open_regular``, or it is larger than ``limit``.
    """
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit / 1e6:.0f} MB", str(path))
    return data


def read_text(path: Path, limit: int = MAX_TEXT_BYTES, errors: str = "strict") -> str:
    """Text of a file of the opened folder, with plain line feeds; raises as ``read_small``."""
    return read_small(path, limit).decode("utf-8", errors).replace("\r\n", "\n")


def read_json(path: Path, limit: int = MAX_SMALL_BYTES) -> object:
    """What a file of JSON says; raises as ``read_small``, and ValueError if it is none."""
    try:
        return json.loads(read_small(path, limit))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_toml(path: Path) -> dict[str, Any]:
    """What a file of TOML says; raises as ``read_small``, and ValueError if it is none."""
    text = read_small(path).decode("utf-8")
    if any(_FLOAT.sub("", line).count(".") > MAX_PARTS for line in text.split("\n")):
        # The time that a key takes to read grows with the square of its parts.
        raise ValueError("it is nested too deeply")
    try:
        document = tomllib.loads(text)
        repr(document)  # Python prints no number of 4,300 digits, as a message would.
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number in it is too long") from None
    return document


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The configuration file: ``MIDSTREAM_CONFIG``, or in the user's configuration folder."""
    chosen = environ.get("MIDSTREAM_CONFIG")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_config_path("midstream") / "config.toml"


def themes_dir() -> Path:
    """The folder with one TOML file per shipped theme."""
    return _data("themes")


def models_dir() -> Path:
    """The folder with one sub-folder per shipped model."""
    return _data("models")


def model_folders() -> list[Path]:
    """The shipped model folders (those with a ``midstream.toml``), by name."""
    return sorted(path.parent for path in models_dir().glob("*/midstream.toml"))


def default_model() -> Path:
    """The model folder that is used when no other is configured: the shipped one.

    Raises:
        UnavailableError: The installation has no model folder.
    """
    folders = model_folders()
    if not folders:
        raise UnavailableError(
            f"No model is installed in {models_dir()}; reinstall Midstream or name a model folder "
            "with --model."
        )
    return folders[0]


def free_disk(path: Path) -> int:
    """Free bytes where a file or folder is, or would be created."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def model_places() -> tuple[Path, ...]:
    """Folders whose sub-folders are installed models: the user's own, then the shipped ones."""
    import platformdirs

    return platformdirs.user_data_path("midstream") / "models", models_dir()


def find_model(chosen: Path) -> Path:
    """The folder of a model given as a folder or as the name of an installed model.

    A path that is neither is returned unchanged; loading it then reports that it is missing.
    """
    if not chosen.exists() and len(chosen.parts) == 1:
        for place in model_places():
            if (place / chosen).is_dir():
                return place / chosen
    return chosen


def tilde(path: Path) -> str:
    """A path as people write it: ``~/notes`` for what is in their home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)
