"""``midstream serve``: the model server alone, for other programs and other machines."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.commands.common import print_json
from midstream.errors import UsageError

if TYPE_CHECKING:
    from midstream.engine.types import TextModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8042, help="port (8042); 0 takes a free one")
    parser.add_argument(
        "--model", type=Path, metavar="NAME|FOLDER", help="a model; default: the shipped one"
    )
    parser.add_argument("--provider", default="cpu", metavar="NAME", help="where to compute (cpu)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads inside one operator")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the bearer token that every request must carry; needed off loopback",
    )
    parser.add_argument(
        "--replay", type=Path, metavar="SCRIPT", help="answer from a script instead of a model"
    )
    parser.add_argument("--json", action="store_true", help="say where it listens as JSON")


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl+C.

    Raises:
        UserError: The model does not load, or the address cannot be used.
    """
    token = read_token(options.token_file) if options.token_file is not None else None
    if token is None and not _is_loopback(options.host):
        raise UsageError(
            f"Others can reach {options.host}, so a token is needed; put one in a file and name "
            "it with --token-file."
        )
    model = _load(options)
    asyncio.run(_serve(model, token, options))
    return 0


def read_token(path: Path) -> str:
    """The token in a file, without the white space around it.

    Raises:
        UsageError: The file cannot be read, or its content is no token.
    """
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"The token file {path} cannot be read: {reason}.") from None
    if not token or not token.isascii() or any(c.isspace() for c in token):
        raise UsageError(f"The token file {path} must hold one token without spaces.")
    return token


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _load(options: argparse.Namespace) -> TextModel:
    if options.replay is not None:
        from midstream.serving.replay import ReplayModel, ReplayScript

        return ReplayModel(ReplayScript.load(options.replay))
    from midstream.engine.model import load_model
    from midstream.resources import default_model
    from midstream.settings import find_model

    folder = default_model() if options.model is None else find_model(options.model)
    return load_model(folder, provider=options.provider, threads=options.threads)


async def _serve(model: TextModel, token: str | None, options: argparse.Namespace) -> None:
    from midstream.serving.app import create_app
    from midstream.serving.running import serve

    loopback = _is_loopback(options.host)
    app = create_app({model.name: model}, token=token)
    async with serve(app, host=options.host, port=options.port, compression=not loopback) as server:
        shown = f"[{options.host}]" if ":" in options.host else options.host
        url = f"ws://{shown}:{server.port}/v1"
        if options.json:
            print_json({"event": "listening", "url": url, "model": model.name})
        else:
            print(f"{model.name} is served at {url} (Ctrl+C ends it).", flush=True)
        await server.finished
