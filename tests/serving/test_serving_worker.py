"""The worker thread: turns by owner, stopping wherever a job stands, conversations in bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.serving.conversations import ResponseCache, StoredConversation
from midstream.serving.replay import ReplayModel
from midstream.serving.worker import GenerationJob, ModelWorker
from tests.helpers.waiting import PATIENCE_S


@asynccontextmanager
async def working(model: ReplayModel) -> AsyncGenerator[ModelWorker]:
    worker = ModelWorker(model)
    try:
        yield worker
    finally:
        await asyncio.to_thread(worker.close)


def job(text: str, owner: str) -> GenerationJob:
    return GenerationJob(GenerateRequest((Message("user", text),)), owner)


async def finish(job: GenerationJob) -> str:
    text = ""
    async with asyncio.timeout(PATIENCE_S):
        while not job.finished:
            await job.wait()
            text += job.take()[0]
    return text + job.take()[0]


async def test_owners_take_turns() -> None:
    order: list[str] = []
    gate = threading.Event()

    def script(request: GenerateRequest) -> str:
        gate.wait(5)
        order.append(request.messages[0].text)
        return ""

    async with working(ReplayModel(script)) as worker:
        first = job("first", "z")
        worker.submit(first)
        await first.wait()
        jobs = [job(f"a{n}", "a") for n in range(4)] + [job("b0", "b"), job("c0", "c")]
        for one in jobs:
            worker.submit(one)
        gate.set()
        await asyncio.gather(*(finish(one) for one in jobs))
    assert order == ["first", "a0", "b0", "c0", "a1", "a2", "a3"]


async def test_generations_run_in_one_thread_and_not_on_the_loop() -> None:
    threads: set[int] = set()

    def script(request: GenerateRequest) -> str:
        threads.add(threading.get_ident())
        return "x"

    async with working(ReplayModel(script)) as worker:
        jobs = [job("x", str(n)) for n in range(5)]
        for one in jobs:
            worker.submit(one)
        await asyncio.gather(*(finish(one) for one in jobs))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_waiting_job_is_cancelled_at_once() -> None:
    async with working(ReplayModel("word " * 10_000, rate=500)) as worker:
        running, waiting = job("x", "a"), job("x", "b")
        worker.submit(running)
        worker.submit(waiting)
        await running.wait()
        assert worker.load == 2
        worker.cancel(waiting)
        assert waiting.finished
        assert waiting.usage.output_tokens == 0
        worker.cancel(running)
        await finish(running)
        assert running.finish_reason is FinishReason.STOPPED
        third = job("x", "b")
        worker.submit(third)
        await third.wait()
        worker.cancel(third)
        await finish(third)
        assert third.usage.output_tokens < 10_000


async def test_ending_at_the_line_cuts_nothing_but_the_next_line() -> None:
    async with working(ReplayModel("one two three\n" * 1000, rate=2000)) as worker:
        one = job("x", "a")
        worker.submit(one)
        await one.wait()
        one.stop_at_line_end()
        text = await finish(one)
    assert text.endswith("three\n")
    assert text == "one two three\n" * text.count("\n")
    assert text.count("\n") < 900


async def test_the_thread_outlives_a_panic() -> None:
    """What a library in Rust raises then is no ``Exception``."""

    class Panic(BaseException):
        pass

    def script(request: GenerateRequest) -> str:
        if request.messages[0].text == "first":
            raise Panic("gave up")
        return "fine"

    async with working(ReplayModel(script)) as worker:
        first, second = job("first", "a"), job("second", "a")
        worker.submit(first)
        worker.submit(second)
        assert await finish(first) == ""
        assert str(first.error) == "Panic: gave up"
        assert await finish(second) == "fine"


async def test_closing_stops_what_runs() -> None:
    worker = ModelWorker(ReplayModel("word " * 100_000, rate=100))
    one = job("x", "a")
    worker.submit(one)
    await one.wait()
    await asyncio.wait_for(asyncio.to_thread(worker.close), 2)
    await finish(one)
    assert one.finish_reason is FinishReason.STOPPED


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=60))
def test_the_cache_keeps_to_its_bounds_and_forgets_the_oldest(
    steps: list[tuple[int, int]],
) -> None:
    cache = ResponseCache(4, 60)
    recent: list[str] = []
    for key, size in steps:
        name = f"resp_{key}"
        cache.add(StoredConversation(name, (Message("user", "x" * size),)))
        recent = [*(other for other in recent if other != name), name]
        held = [other for other in recent if cache.get(other) is not None]
        assert name in held, "the newest is always kept"
        assert len(held) == len(cache) <= 4
        assert held == recent[len(recent) - len(held) :], "the oldest go first"
        sizes = sum(found.characters for other in held if (found := cache.get(other)))
        assert sizes <= 60 or len(held) == 1


def reading(text: str, owner: str) -> GenerationJob:
    return GenerationJob(GenerateRequest((Message("user", text),), generate=False), owner)


async def started(job: GenerationJob) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not job.started:
            await job.wait()


async def test_a_prompt_is_read_while_the_owners_own_generation_runs() -> None:
    async with working(ReplayModel("word " * 10_000, rate=500)) as worker:
        running, own, other = job("x", "a"), reading("x", "a"), reading("x", "b")
        worker.submit(running)
        await started(running)
        worker.submit(other)
        worker.submit(own)
        await finish(own)
        assert not running.finished
        await asyncio.sleep(0.05)
        assert not other.started
        worker.cancel(running)
        await finish(running)
        await finish(other)
        assert other.error is None
        assert worker.load == 0


async def test_what_reads_ahead_gives_way() -> None:
    async with working(ReplayModel("x", delay=0.3)) as worker:
        slow = reading("slow", "a")
        worker.submit(slow)
        await started(slow)
        old, new, foreign = reading("old", "a"), reading("new", "a"), reading("foreign", "b")
        for one in (old, foreign, new):
            worker.submit(one)
        await finish(old)
        assert not old.started
        answer = job("answer", "a")
        worker.submit(answer)
        # The answer waits for no reading ahead, not even for one that runs.
        await finish(new)
        await finish(slow)
        assert not new.started
        assert not answer.finished
        assert not foreign.started
        assert await finish(answer) == "x"
        await finish(foreign)
        assert foreign.started


async def test_no_other_prompt_is_read_once_a_generation_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with working(ReplayModel("x", delay=0.3)) as worker:
        slow, foreign, answer = reading("slow", "a"), reading("foreign", "b"), job("answer", "a")
        worker.submit(slow)
        await started(slow)
        worker.submit(foreign)
        next_ones: list[GenerationJob | None] = []
        cancel = worker.cancel

        def noted(one: GenerationJob) -> None:
            next_ones.append(worker._readable())  # the job that is read once this one has ended
            cancel(one)

        monkeypatch.setattr(worker, "cancel", noted)
        worker.submit(answer)
        assert next_ones == [None]
        assert await finish(answer) == "x"
        await finish(foreign)


async def test_what_is_read_beside_a_generation_ends_with_it() -> None:
    async with working(ReplayModel("word " * 10_000, rate=500, delay=30.0)) as worker:
        for stopped in (True, False):
            running, beside, foreign = job("x", "a"), reading("x", "a"), job("x", "b")
            worker.submit(running)
            await started(running)
            worker.submit(foreign)
            worker.submit(beside)
            await started(beside)
            if stopped:
                worker.cancel(foreign)
                worker.cancel(running)
            else:
                running.stop()  # as if it had come to its end: another owner's turn begins
            await finish(running)
            await finish(beside)
            worker.cancel(foreign)
            await finish(foreign)
        assert worker.load == 0


async def test_stopping_may_meet_the_end() -> None:
    """The worker may let go of a generation between any two steps of the stop."""

    class Ending(GenerationJob):
        def __getattribute__(self, name: str) -> object:
            found = super().__getattribute__(name)
            if name == "_generation" and found is not None:
                super().__setattr__("_generation", None)
            return found

    async with working(ReplayModel("")) as worker:
        one = Ending(GenerateRequest((Message("user", "x"),)), "a")
        stopping = worker.model.start(one.request)
        object.__setattr__(one, "_generation", stopping)
        one.stop()
        list(stopping)
        assert stopping.finish_reason is not None
