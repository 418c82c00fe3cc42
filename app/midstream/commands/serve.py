"""Run the model server alone, for other programs and other machines."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.commands.common import REPLAY_HELP, print_json
from midstream.errors import UsageError
from midstream.resources import find_model
from midstream.settings import check_setting

if TYPE_CHECKING:
    from collections.abc import Generator

    from midstream.serving.limits import Limits
    from midstream.serving.running import RunningServer
    from midstream.serving.service import Service
    from midstream.serving.source import ModelSource

GRACE_S = 30.0
"""How long answers that run may take to end once the server is stopped."""
_MIN_TOKEN_LENGTH = 22
"""Characters of a token where other machines can connect: 128 bits in base64."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", type=Path, metavar="NAME|FOLDER", help="a model; default: the shipped one"
    )
    model.add_argument(
        "--served-model-name",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help=(
            "serve the model under these names instead of its own, for clients that expect "
            "certain names"
        ),
    )
    model.add_argument(
        "--provider",
        default="cpu",
        metavar="NAME",
        help="where the model runs: cpu, cuda, ... (cpu)",
    )
    model.add_argument("--threads", type=int, metavar="N", help="CPU threads of the model")
    model.add_argument(
        "--pace",
        type=_rate,
        metavar="N",
        help="write at most N tokens per second; 20 is reading speed",
    )
    model.add_argument(
        "--pacing",
        type=_pacing,
        default="off",
        metavar="MACHINE[:MODEL]",
        help="answer at the simulated speed of a machine that runs a 70B model, or MODEL: wafer, "
        "gpu, replay (whole answers at a wafer's speed), or off",
    )
    model.add_argument(
        "--cache-mb",
        type=_megabytes,
        default=0,
        metavar="N",
        help="megabytes of disk for what chat models have read, for the next start (0: none)",
    )
    model.add_argument("--replay", type=Path, metavar="SCRIPT", help=REPLAY_HELP)
    place = parser.add_argument_group("address and access")
    place.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    place.add_argument("--port", type=_port, default=8042, help="port (8042); 0 picks a free one")
    place.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with the secret that clients must send as a bearer token; required unless only "
        "this machine can connect",
    )
    place.add_argument(
        "--tls-cert",
        type=Path,
        metavar="FILE",
        help="certificate to encrypt with (TLS), with its chain",
    )
    place.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="private key of the certificate"
    )
    place.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages from this origin use the server, such as https://ide.example; repeatable",
    )
    bounds = parser.add_argument_group("limits (of one server process)")
    bounds.add_argument("--max-connections", type=_count, metavar="N", help="open WebSockets (256)")
    bounds.add_argument(
        "--max-requests", type=_count, metavar="N", help="HTTP requests at once (64)"
    )
    bounds.add_argument(
        "--max-waiting", type=_count, metavar="N", help="answers that run or wait (1024)"
    )
    bounds.add_argument(
        "--max-message", type=_count, metavar="MIB", help="size of one message in MiB (16)"
    )
    bounds.add_argument(
        "--connection-minutes",
        type=_count,
        metavar="N",
        help="close connections after N minutes (never)",
    )
    ray = parser.add_argument_group(
        "several server processes (replicas), on one machine or on a Ray cluster"
    )
    ray.add_argument("--ray", action="store_true", help="serve as a Ray Serve deployment")
    ray.add_argument(
        "--ray-address", metavar="HOST:PORT|auto", help="a running cluster; default: one of its own"
    )
    ray.add_argument(
        "--replicas", type=_count, default=1, metavar="N", help="replicas that always run (1)"
    )
    ray.add_argument(
        "--max-replicas",
        type=_count,
        default=4,
        metavar="N",
        help="the most that are started under load (4)",
    )
    ray.add_argument(
        "--connections-per-replica",
        type=_count,
        default=8,
        metavar="N",
        help="open connections above which another replica is started (8)",
    )
    ray.add_argument(
        "--replica-cpus", type=_rate, default=1.0, metavar="N", help="cores for each replica (1)"
    )
    ray.add_argument(
        "--replica-gpus", type=_rate, default=0.0, metavar="N", help="GPUs for each replica (0)"
    )
    parser.add_argument(
        "--log-requests",
        action="store_true",
        help="log a line per request on standard error, without prompts",
    )
    parser.add_argument("--json", action="store_true", help="print the address as JSON")


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl+C or SIGTERM.

    Raises:
        UserError: The model does not load, or the address cannot be used.
    """
    token_file: Path | None = options.token_file
    token = read_token(token_file) if token_file is not None else None
    loopback = _is_loopback(options.host)
    if token_file is None and not loopback:
        raise UsageError(
            f"{options.host} is reachable from other machines and needs a token; put one in a file "
            "and pass it with --token-file."
        )
    if not loopback and token_file is not None:
        _check_secret(token_file, token or "")
    _check_tls(options)
    if not options.ray and (options.ray_address is not None or options.replicas > 1):
        raise UsageError("Replicas need Ray; add --ray (and install the extra `ray`).")
    _check_origins(options.allow_origin)
    if not loopback and options.tls_cert is None:
        print(
            f"midstream: {options.host} is served without TLS: the token and all code travel in "
            "the clear; --tls-cert and --tls-key encrypt them.",
            file=sys.stderr,
        )
    source = _source(options)
    # As the first process of a container it would otherwise not be stopped while it loads.
    signal.signal(signal.SIGTERM, _terminated)
    if options.ray:
        asyncio.run(_on_ray(source, token, options))
    elif asyncio.run(_serve(source, token, options)):
        raise KeyboardInterrupt
    return 0


def read_token(path: Path) -> str:
    """The token in a file, stripped.

    Raises:
        UsageError: The file cannot be read, or does not contain a token.
    """
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"The token file {path} cannot be read: {reason}.") from None
    if not token or not token.isascii() or any(c.isspace() for c in token):
        raise UsageError(f"The token file {path} must contain one token without spaces.")
    return token


def _check_secret(path: Path, token: str) -> None:
    """Refuse a token that others can guess or read.

    Raises:
        UsageError: It is short, or its file is readable for every user of this machine.
    """
    if len(token) < _MIN_TOKEN_LENGTH:
        raise UsageError(
            f"The token in {path} has {len(token)} characters and can be guessed; where other "
            f"machines can connect, it needs {_MIN_TOKEN_LENGTH} or more, such as `openssl rand "
            "-hex 32` writes."
        )
    # Windows has no such mode bits.
    if os.name == "posix" and path.stat().st_mode & 0o006:
        raise UsageError(
            f"Every user of this machine can read or write {path}; run `chmod 600 {path}`."
        )


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low:g} to {high:g}")
    return value


def _rate(text: str) -> float:
    return _number(text, 0, 1e6)


def _megabytes(text: str) -> int:
    return int(_number(text, 0, 1e6))


def _pacing(text: str) -> str:
    try:
        return str(check_setting("pacing", text, "--pacing"))
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    return int(_number(text, 1, 1e6))


def _port(text: str) -> int:
    return int(_number(text, 0, 65_535))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_tls(options: argparse.Namespace) -> None:
    if (options.tls_cert is None) != (options.tls_key is None):
        raise UsageError("TLS needs both --tls-cert and --tls-key.")
    if options.tls_cert is None:
        return

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"{options.tls_cert} and {options.tls_key} are not a certificate and its key: {reason}."
        ) from None


def _check_origins(origins: list[str]) -> None:
    for origin in origins:
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not host or "/" in host:
            raise UsageError(
                f"--allow-origin {origin} is not an origin; write it as browsers do, such as "
                "https://ide.example or http://localhost:3000."
            )


def _source(options: argparse.Namespace) -> ModelSource:
    from midstream.serving.source import ModelSource

    folder = None if options.model is None else find_model(options.model).resolve()
    replay = None if options.replay is None else options.replay.resolve()
    return ModelSource(
        folder,
        replay,
        options.provider,
        options.threads,
        options.pace or None,
        options.pacing,
        options.cache_mb,
    )


def _limits(options: argparse.Namespace) -> Limits:
    from midstream.serving.limits import Limits

    given = {
        "connections": options.max_connections,
        "posts": options.max_requests,
        "waiting_total": options.max_waiting,
        "message_bytes": options.max_message and options.max_message * 1024 * 1024,
        "connection_seconds": options.connection_minutes and options.connection_minutes * 60.0,
    }
    return replace(Limits(), **{name: value for name, value in given.items() if value is not None})


def _say(options: argparse.Namespace, model: str, port: int) -> None:
    shown = f"[{options.host}]" if ":" in options.host else options.host
    url = f"{'ws' if options.tls_cert is None else 'wss'}://{shown}:{port}/v1"
    if options.json:
        print_json({"event": "listening", "url": url, "model": model})
    else:
        print(f"{model} is served at {url} (Ctrl+C stops it).", flush=True)


async def _serve(source: ModelSource, token: str | None, options: argparse.Namespace) -> bool:
    """Serve until a signal; whether that was Ctrl+C."""
    from midstream.serving.app import create_app
    from midstream.serving.running import raise_file_limit, serve

    if options.log_requests:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    model = source.load()
    limits = _limits(options)
    raise_file_limit(limits.connections + limits.posts)
    names = options.served_model_name or [model.name]
    app = create_app(
        dict.fromkeys(names, model), token=token, limits=limits, origins=options.allow_origin
    )
    async with serve(
        app,
        host=options.host,
        port=options.port,
        limits=limits,
        compression=not _is_loopback(options.host),
        certificate=options.tls_cert and str(options.tls_cert),
        key=options.tls_key and str(options.tls_key),
        log_requests=options.log_requests,
        grace=GRACE_S,
    ) as server:
        with _signals(server, app.state.service) as stopped_by:
            _say(options, names[0], server.port)
            await server.finished
    return stopped_by[:1] == [signal.SIGINT]


@contextlib.contextmanager
def _signals(server: RunningServer, service: Service) -> Generator[list[int]]:
    """Let SIGTERM and Ctrl+C stop a server once its answers have ended; a second one at once.

    Yields:
        The signals, in the order they came.
    """
    loop, came = asyncio.get_running_loop(), list[int]()

    def stop(number: int) -> None:
        came.append(number)
        if len(came) > 1:
            server.hurry()
            return
        if service.load:
            print(
                f"midstream: answers that run may end within {GRACE_S:.0f} s; Ctrl+C or SIGTERM "
                "again stops at once.",
                file=sys.stderr,
            )
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        yield came
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _terminated(_number: int, _frame: object) -> None:
    sys.exit(0)


async def _on_ray(source: ModelSource, token: str | None, options: argparse.Namespace) -> None:
    from midstream.serving.cluster import ClusterOptions, cluster

    setup = ClusterOptions(
        source=source,
        names=tuple(options.served_model_name),
        token=token,
        origins=tuple(options.allow_origin),
        limits=_limits(options),
        host=options.host,
        port=options.port,
        certificate=options.tls_cert and str(options.tls_cert.resolve()),
        key=options.tls_key and str(options.tls_key.resolve()),
        min_replicas=options.replicas,
        max_replicas=options.max_replicas,
        connections_per_replica=options.connections_per_replica,
        cpus=options.replica_cpus,
        gpus=options.replica_gpus,
        address=options.ray_address,
        log_requests=options.log_requests,
    )
    ended = asyncio.Event()
    async with cluster(setup) as port:
        # Shut Ray's children down in order also when a service manager stops this process.
        # Only once Ray is up, because it installs its own handler.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        _say(options, next(iter(options.served_model_name), source.name), port)
        await ended.wait()
