"""List, inspect, check, add, download and remove model folders."""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from midstream import processes
from midstream.commands.common import print_json, printable
from midstream.commands.models_get import (
    add_get_arguments,
    add_remove_arguments,
    print_partials,
    run_get,
    run_remove,
)
from midstream.errors import UsageError
from midstream.resources import default_model, find_model, model_places
from midstream.settings import load_settings

if TYPE_CHECKING:
    from midstream.engine.inspect import ModelReport
    from midstream.pairing.trial.run import TrialResult
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings

_Step = TypeVar("_Step")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    _action(actions, "list", "list the installed models (the default)")
    info = _action(actions, "info", "show the properties of a model folder, without loading it")
    check = _action(actions, "check", "load a model and run it; exit 1 if it does not work")
    add = _action(actions, "add", "check a model folder and install a copy")
    add_get_arguments(
        _action(actions, "get", "download a published model; without a name, the catalogue")
    )
    add_remove_arguments(_action(actions, "remove", "remove a model that was added or downloaded"))
    for action in (info, check):
        action.add_argument(
            "model", nargs="?", type=Path, metavar="NAME|FOLDER", help="default: the shipped model"
        )
    check.add_argument("--provider", default="cpu", help="where to run it (cpu, cuda, ...)")
    check.add_argument(
        "--edits",
        nargs="?",
        type=int,
        const=0,
        metavar="N",
        help="have the first N editing requests of a fixed set (all without N) carried out, and "
        "count what is right",
    )
    check.add_argument(
        "--endpoint",
        metavar="NAME|URL",
        help="with --edits: ask this server instead; NAME is then one of its models",
    )
    check.add_argument("--threads", type=int, metavar="N", help="CPU threads of the model")
    add.add_argument("model", type=Path, metavar="FOLDER", help="the folder to copy")
    parser.add_argument("--json", action="store_true", help="JSON objects, one per line")


def _action(actions: Any, name: str, summary: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(name, help=summary, description=summary)
    action.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="JSON objects, one per line"
    )
    return action


def run(options: argparse.Namespace) -> int:
    """Do one of the actions.

    Raises:
        UserError: The folder is no model folder, or cannot be added, downloaded or removed.
    """
    if options.action == "get":
        return run_get(options)
    if options.action == "remove":
        return run_remove(options)
    if options.action == "check":
        return _check(options)
    if options.action == "info":
        _show(_describe(options.model), as_json=options.json)
    elif options.action == "add":
        from midstream.engine.inspect import add

        place = model_places()[0]
        place.mkdir(parents=True, exist_ok=True)
        for added in _in_thread(add(options.model, place) for _ in (None,)):
            _show(added, as_json=options.json)
    else:
        _list(as_json=options.json)
    return 0


def _folder(chosen: Path | None) -> Path:
    return default_model() if chosen is None else find_model(chosen)


def _describe(chosen: Path | None) -> ModelReport:
    from midstream.engine.inspect import describe

    return describe(_folder(chosen))


def _list(*, as_json: bool) -> None:
    from midstream.engine.inspect import installed

    found = installed(model_places())
    for info in found:
        if as_json:
            print_json(_as_dict(info))
        else:
            size = f"{info.bytes / 1e6:,.0f} MB"
            what = f"{info.prompt}, {info.context_length:,} tokens, {size}"
            print(printable(f"{info.name:<24} {what:<40} {info.path}"))
    partial = print_partials(model_places()[0], as_json=as_json)
    if not (found or partial or as_json):
        print("No model is installed; `midstream models get` lists what can be downloaded.")


def _show(info: ModelReport, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_dict(info))
        return
    values = {**_as_dict(info), "bytes": f"{info.bytes:,}"}
    del values["facts"]
    for name, value in {**values, **info.facts}.items():
        print(printable(f"{name.replace('_', ' '):<18} {value}"))


def _as_dict(info: ModelReport) -> dict[str, Any]:
    return {**asdict(info), "path": str(info.path), "facts": dict(info.facts)}


def _check(options: argparse.Namespace) -> int:
    if options.edits is not None:
        return asyncio.run(_check_edits(options))
    if options.endpoint is not None:
        raise UsageError("--endpoint needs --edits: a server is tried with editing requests.")
    from midstream.engine.inspect import check

    works = True
    steps = check(_folder(options.model), provider=options.provider, threads=options.threads)
    for step in _in_thread(steps):
        works = works and step.ok
        if options.json:
            print_json(asdict(step))
        else:
            print(printable(f"{'ok  ' if step.ok else 'FAIL'}  {step.name:<14} {step.detail}"))
    return 0 if works else 1


def _in_thread(steps: Iterator[_Step]) -> Iterator[_Step]:
    """Have a thread take the steps: a graph may compute without end, and signals end the program.

    Signals are handled in the main thread alone, and only while that runs Python.
    """
    found: SimpleQueue[_Step | BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            for step in steps:
                found.put(step)
            found.put(None)
        except BaseException as error:
            found.put(error)

    thread = threading.Thread(target=work, name="check", daemon=True)
    thread.start()
    try:
        while (step := found.get()) is not None:
            if isinstance(step, BaseException):
                thread.join()  # It is at its end, and no reason to end the program.
                raise step
            yield step
        thread.join()
    finally:
        if thread.is_alive():
            processes.end_soon()


async def _check_edits(options: argparse.Namespace) -> int:
    """Run the trial; the last line has the figures."""
    from midstream.pairing.trial.kept import trial_key
    from midstream.serving.embedded import EmbeddedServer
    from midstream.serving.source import ModelSource

    settings = load_settings(Path())
    if options.endpoint is not None:
        settings = settings.with_endpoint(options.endpoint, "--endpoint")
    if options.endpoint is not None and (profile := settings.profile) is not None:
        model = str(options.model or profile.model)
        settings = replace(settings, endpoint_model=model)
        await _try_edits(options, settings, None, trial_key(profile.url, model), model)
        return 0
    folder = _folder(options.model)
    source = ModelSource(folder, None, options.provider, options.threads)
    server = EmbeddedServer(source)
    try:
        endpoint = await server.start()
        await _try_edits(options, settings, endpoint, trial_key(folder, ""), folder.name)
    finally:
        await server.close()
    return 0


async def _try_edits(
    options: argparse.Namespace,
    settings: Settings,
    endpoint: Endpoint | None,
    key: str,
    name: str,
) -> None:
    from statistics import median

    from midstream.pairing.trial.kept import keep_trial
    from midstream.pairing.trial.requests import load_requests
    from midstream.pairing.trial.run import VERDICTS, run_trial

    requests = load_requests(options.edits or None)
    results: list[TrialResult] = []
    async for result in run_trial(requests, settings, endpoint):
        results.append(result)
        if options.json:
            print_json(asdict(result))
        else:
            place = f"{len(results):>3} of {len(requests)}"
            said = f"{result.id:<24} {result.verdict:<20} {result.seconds:5.1f} s"
            print(printable(f"{place}  {said}  {result.why}"), flush=True)
    counts = Counter(result.verdict for result in results)
    firsts = [result.first_s for result in results if result.first_s is not None]
    figures: dict[str, object] = {verdict: counts[verdict] for verdict in VERDICTS}
    figures["requests"] = len(results)
    asked = Counter(result.edit_format for result in results if result.edit_format)
    figures["edit format"] = ", ".join(name for name, _ in asked.most_common())
    figures["median seconds to the first text"] = round(median(firsts), 2) if firsts else None
    figures["median seconds"] = round(median(result.seconds for result in results), 2)
    if options.json:
        print_json({"model": name, **figures})
    else:
        print(printable(", ".join(f"{name}: {value}" for name, value in figures.items())))
    await asyncio.to_thread(
        keep_trial, key, len(results), counts["right"], counts["wrong and unflagged"]
    )
