"""How long a person waits for the engine, for `midstream bench engine`: to a first token, to a
stop, and for an event loop beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from midstream.bench.reference_edits import edit_requests, long_requests
from midstream.edits.request import render_follow_up
from midstream.engine.loop import PREFILL_CHUNK, ModelGeneration, Runtime
from midstream.engine.model import OnnxModel, PromptTooLongError
from midstream.engine.plan import Plan
from midstream.engine.sampling import Sampler
from midstream.engine.types import GenerateRequest, Message

LONG = "long region, "
"""In front of what is measured on long regions."""

REDIRECTS: dict[str, int | None] = {
    "redirect": None,
    "redirect read ahead": 0,
    "redirect read a line ago": 1,
}
"""What is measured of redirects; see `_redirect`."""

KEPT_LINES = 3

STOPS = 12
"""Generations stopped, each at another moment."""


def first_tokens(model: OnnxModel, repeat: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return milliseconds to the first token: nothing cached, all cached, and after redirects; and
    which share of the cold time a redirect takes and of its prompt it reads.

    Of the reference functions one by one, and of several of them as one long region. A redirect is
    sent at once, or was read ahead, as the program does while it is typed: behind the same lines,
    or behind one line less.
    """
    times: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for title, requests in (("", edit_requests()), (LONG, long_requests())):
        for request in requests * repeat:
            # A tiny context has no room for a long region.
            with contextlib.suppress(PromptTooLongError):
                model.cache.clear()
                cold, _ = _first_token(model, request)
                warm, _ = _first_token(model, request)
                found = {"cold": cold, "warm": warm}
                for kind, before in REDIRECTS.items():
                    found[kind], read = _redirect(model, request, before)
                    shares.setdefault(f"{title}{kind}, time", []).append(found[kind] / cold)
                    shares.setdefault(f"{title}{kind}, tokens read", []).append(read)
                for key, value in found.items():
                    times.setdefault(title + key, []).append(value)
    return (
        {key: 1000 * median(values) for key, values in times.items()},
        {key: median(values) for key, values in shares.items()},
    )


def _redirect(
    model: OnnxModel, request: GenerateRequest, before: int | None
) -> tuple[float, float]:
    """Redirect an answer somewhere behind its third line; see `_first_token`.

    Args:
        model: the model.
        request: what the answer is to.
        before: lines that were still to come when the redirect was read ahead; None if it was not.
    """
    model.cache.clear()
    answer = iter(model.answer(request))
    text = ""
    for piece in answer:
        text += piece.text
        if text.count("\n") >= KEPT_LINES:
            break
    said = Message("user", render_follow_up("rename `result` to `outcome`"))

    def redirected(lines: int) -> GenerateRequest:
        kept = Message("assistant", "".join(text.splitlines(keepends=True)[:lines]))
        return replace(request, messages=(*request.messages, kept, said))

    if before is not None:
        for _ in model.start(replace(redirected(KEPT_LINES - before), generate=False)):
            pass
        next(answer, None)
    close: Callable[[], None] = getattr(answer, "close")  # noqa: B009
    close()
    return _first_token(model, redirected(KEPT_LINES))


def _first_token(model: OnnxModel, request: GenerateRequest) -> tuple[float, float]:
    """Return the seconds to a first token, and the share of the prompt that was read."""
    started = time.perf_counter()
    generation = model.start(request)
    pieces = iter(generation)
    next(pieces)
    seconds = time.perf_counter() - started
    close: Callable[[], None] = getattr(pieces, "close")  # noqa: B009
    close()
    usage = generation.usage
    return seconds, 1 - usage.cached_tokens / usage.input_tokens


class _Silent:
    """A text decoder without text."""

    def feed(self, token_id: int) -> str:
        return ""

    def finish(self) -> str:
        return ""


def _bare(model: OnnxModel, prompt: int, answer: int) -> ModelGeneration:
    """Return a generation of plain tokens, with nothing in the cache."""
    model.cache.clear()
    ids = [i % model.decoder.vocab for i in range(7, 7 + prompt)]
    return ModelGeneration(
        Plan(ids, [], frozenset(), _Silent()),
        Runtime(model.decoder, model.cache),
        Sampler(),
        limit=answer,
    )


def stops(
    model: OnnxModel, *, chunks: int = 16, turns: int = STOPS
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure from stop() on one thread to the end of the generation on another.

    Args:
        model: the model.
        chunks: how many chunks the prompt has.
        turns: generations stopped per kind.

    Returns:
        Milliseconds, and the slowest stop in forwards of its kind: a chunk of a prompt, a step.
    """
    took: dict[str, float] = {}
    runs: dict[str, float] = {}
    prompt = min(model.decoder.context_length - 128, chunks * PREFILL_CHUNK)
    whole = _bare(model, prompt, 64)
    list(whole)
    forwards = {
        "reading": whole.usage.prefill_s * min(1.0, PREFILL_CHUNK / prompt),
        "writing": whole.usage.decode_s / whole.usage.forwards,
    }
    for kind, forward in forwards.items():
        times: list[float] = []
        for turn in range(turns):
            delay = (1 + turn / turns) * forward
            answer = model.decoder.context_length - prompt - 1
            times.append(_stop_once(_bare(model, prompt, answer), delay, kind == "writing"))
        took[kind] = 1000 * median(times)
        took[f"{kind}, slowest"] = 1000 * max(times)
        runs[kind] = max(times) / forward
    return took, runs


def _stop_once(generation: ModelGeneration, delay: float, writing: bool) -> float:
    """Stop some seconds after the beginning, or after the first token; return how long it took."""
    begun, ended = threading.Event(), list[float]()

    def work() -> None:
        if not writing:
            begun.set()
        for _ in generation:
            begun.set()
        ended.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    time.sleep(delay)
    stopped = time.perf_counter()
    generation.stop()
    thread.join()
    return max(0.0, ended[0] - stopped)


async def loop_lag(model: OnnxModel) -> dict[str, float]:
    """Return how many milliseconds late an event loop's timers are, idle and while a worker thread
    of the same process generates.
    """
    found: dict[str, float] = {}

    def work(done: threading.Event) -> None:
        requests = edit_requests()
        while not done.is_set():
            for request in requests:
                for _ in model.start(request):
                    if done.is_set():
                        return

    for name, busy in (("idle", False), ("generating", True)):
        done = threading.Event()
        thread = threading.Thread(target=work, args=(done,))
        if busy:
            thread.start()
        lags: list[float] = []
        for _ in range(400):
            started = time.perf_counter()
            await asyncio.sleep(0.002)
            lags.append(1000 * (time.perf_counter() - started) - 2)
        done.set()
        if busy:
            await asyncio.to_thread(thread.join)
        lags.sort()
        found[f"{name} p50"] = lags[len(lags) // 2]
        found[f"{name} p99"] = lags[int(len(lags) * 0.99)]
    return found
