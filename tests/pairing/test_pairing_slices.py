"""Long work in slices: a key that takes several rounds of the event loop passes between them."""

import asyncio
from time import thread_time

from midstream.pairing.slices import SLICE_S, pause

ROUNDS = 5
"""Rounds of the event loop that a key takes."""


def work(seconds: float) -> None:
    end = thread_time() + seconds
    while thread_time() < end:
        pass


async def test_a_key_waits_for_one_slice_however_many_tasks_work() -> None:
    done: list[int] = []

    async def task(number: int) -> None:
        while True:
            work(SLICE_S)
            done.append(number)
            await pause()

    tasks = [asyncio.create_task(task(number)) for number in range(5)]
    await asyncio.sleep(0)  # Each has done its first slice.
    waited: list[int] = []
    for _ in range(10):
        before = len(done)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        waited.append(len(done) - before)
    await cancel(tasks)
    assert max(waited) == 1


async def test_tasks_take_turns() -> None:
    done: list[int] = []

    async def task(number: int) -> None:
        for _ in range(4):
            work(SLICE_S)
            done.append(number)
            await pause()

    await asyncio.gather(*(task(number) for number in range(3)))
    assert done == [0, 1, 2] * 4


async def test_short_steps_are_one_slice() -> None:
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    work(SLICE_S)
    await pause()
    counter = asyncio.create_task(count())
    for _ in range(100):
        await pause()
    await cancel([counter])
    assert rounds < 400


async def test_a_task_that_is_cancelled_in_a_pause_lets_the_next_go_on() -> None:
    async def task() -> None:
        work(SLICE_S)
        await pause()

    first, second = (asyncio.create_task(task()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()


async def cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
