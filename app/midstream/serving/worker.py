"""One worker thread per model: generations run there one at a time, never on the event loop.

Owners (connections) take turns, so that one with a long queue cannot starve the others. Text
crosses to the loop in a buffer with at most one wake-up under way, so the thread never waits for a
reader and a fast model does not flood the loop.

Prompts that are only to be read ahead (``generate`` is False) have a thread of their own. They give
way to everything else, but an owner may have one read while its own generation runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

from midstream.engine.types import FinishReason, GenerateRequest, Generation, TextModel, Usage
from midstream.processes import favour_event_loop

_LINE_GRACE_TOKENS = 160
"""Tokens a generation may still take to reach the end of its line when it should end there."""


class GenerationJob:
    """One generation, seen from the event loop.

    Attributes:
        started: Whether the worker has taken it up.
        queued_s: Seconds it waited for that; 0 before.
        usage: What it has cost so far.
        finished: Whether it is over; ``usage``, ``finish_reason`` and ``error`` are final then.
        error: What ``TextModel.start`` or the generation raised.
    """

    def __init__(self, request: GenerateRequest, owner: Hashable) -> None:
        self.request = request
        self.owner = owner
        self.started = False
        self.queued_s = 0.0
        self.finished = False
        self.usage = Usage()
        self.finish_reason = FinishReason.STOPPED
        self.error: Exception | None = None
        self._made = time.perf_counter()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()
        self._lock = threading.Lock()
        self._texts: list[str] = []
        self._tokens = 0
        self._signalled = False
        self._generation: Generation | None = None
        self._stop = False
        self._line_end = False

    # Event loop side.

    async def wait(self) -> None:
        """Wait until there is text, or the job started, finished or was ``nudge``d."""
        await self._changed.wait()
        self._changed.clear()

    async def wait_until(self, when: float) -> None:
        """Wait until a loop time, but not longer than to the end of the job or a ``nudge``."""
        timer = self._loop.call_at(when, self._urgent.set)
        await self._urgent.wait()
        timer.cancel()
        if not self.finished:
            self._urgent.clear()

    def nudge(self) -> None:
        self._changed.set()
        self._urgent.set()

    def take(self) -> tuple[str, int]:
        """Text and token count since the last call."""
        with self._lock:
            text, tokens = "".join(self._texts), self._tokens
            self._texts.clear()
            self._tokens = 0
            self._signalled = False
        return text, tokens

    def stop(self) -> None:
        """End the generation within one forward pass; pending text still arrives."""
        self._stop = True
        generation = self._generation  # the worker takes it away when it is over
        if generation is not None:
            generation.stop()

    def stop_at_line_end(self) -> None:
        """End the generation after the current line (or soon, if that is long)."""
        self._line_end = True

    # Worker side.

    def run(self, model: TextModel) -> None:
        """Generate; runs in the worker thread, which calls ``finish`` next."""
        if self._stop:
            return
        self.queued_s = time.perf_counter() - self._made
        self._post(self._on_started)
        try:
            generation = self._generation = model.start(self.request)
            self.usage = generation.usage
            if self._stop:
                generation.stop()
            try:
                self._pump(generation)
            finally:
                self.usage = generation.usage
                if generation.finish_reason is not None:
                    self.finish_reason = generation.finish_reason
        except Exception as error:  # the turn decides what to report to the client
            self.error = error
        except BaseException as error:  # as a library in Rust panics; this thread has to go on
            self.error = RuntimeError(f"{type(error).__name__}: {error}")
        finally:
            self._generation = None

    def finish(self) -> None:
        self._post(self._on_finished)

    def _pump(self, generation: Generation) -> None:
        grace, over = _LINE_GRACE_TOKENS, False
        for piece in generation:
            if over:
                continue
            text = piece.text
            if self._line_end:
                head, newline, _ = text.partition("\n")
                grace -= piece.tokens
                if newline:
                    text, over = head + newline, True
                over = over or grace <= 0
            with self._lock:
                if text:
                    self._texts.append(text)
                self._tokens += piece.tokens
                signal = not self._signalled
                self._signalled = True
            if signal:
                self._post(self._changed.set)
            if over:
                generation.stop()

    def _on_started(self) -> None:
        self.started = True
        self._changed.set()

    def _on_finished(self) -> None:
        self.finished = True
        self.nudge()

    def _post(self, callback: Callable[[], object]) -> None:
        # The loop is closed when the server ends while a generation is being stopped.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)


class ModelWorker:
    """A model and the thread that runs it.

    Args:
        model: The model; the worker closes it in ``close``.
    """

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self._condition = threading.Condition()
        self._queues: dict[Hashable, deque[GenerationJob]] = {}
        self._order: deque[Hashable] = deque()
        self._running: GenerationJob | None = None
        self._ahead: dict[Hashable, GenerationJob] = {}
        self._reading: GenerationJob | None = None
        self._closing = False
        favour_event_loop()
        self._thread = threading.Thread(target=self._work, name=f"model-{model.name}", daemon=True)
        self._thread.start()
        self._reader = threading.Thread(
            target=self._read_ahead, name=f"ahead-{model.name}", daemon=True
        )
        self._reader.start()

    def submit(self, job: GenerationJob) -> None:
        """Queue a job behind its owner's others; owners take turns.

        One that only reads ahead takes the place of its owner's last one.
        """
        with self._condition:
            old = [self._ahead.get(job.owner), self._reading]
            if job.request.generate:  # Before anything is cancelled, or the next one is read.
                queue = self._queues.get(job.owner)
                if queue is None:
                    queue = self._queues[job.owner] = deque()
                    self._order.append(job.owner)
                queue.append(job)
                self._condition.notify_all()
        for other in old:
            if other is not None and (job.request.generate or other.owner == job.owner):
                self.cancel(other)
        if not job.request.generate:
            with self._condition:
                self._ahead[job.owner] = job
                self._condition.notify_all()

    def cancel(self, job: GenerationJob) -> None:
        """Stop a job; one that still waits finishes at once."""
        job.stop()
        with self._condition:
            queue = self._queues.get(job.owner)
            waiting = queue is not None and job in queue
            if queue is not None and waiting:
                queue.remove(job)
            if self._ahead.get(job.owner) is job:
                del self._ahead[job.owner]
                waiting = True
            reading = self._reading if self._running is job else None
        if reading is not None:
            reading.stop()  # the generation may be waiting for it, and must notice its stop
        if waiting:
            job.finished = True
            job.nudge()

    def ahead(self, job: GenerationJob) -> int:
        """Jobs before a waiting one, as owners take turns; 0 once it runs."""
        with self._condition:
            own = self._queues.get(job.owner)
            if own is None or job not in own:
                return 0
            place = own.index(job)
            before, count = True, place + (self._running is not None)
            for owner in self._order:
                if owner == job.owner:
                    before = False
                else:
                    count += min(len(self._queues[owner]), place + before)
            return count

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def load(self) -> int:
        with self._condition:
            waiting = sum(len(queue) for queue in self._queues.values()) + len(self._ahead)
            return waiting + (self._running is not None) + (self._reading is not None)

    def close(self) -> None:
        """Stop what runs, end the thread and free the model."""
        with self._condition:
            self._closing = True
            under_way = (self._running, self._reading)
            self._condition.notify_all()
        for job in under_way:
            if job is not None:
                job.stop()
        self._thread.join(timeout=5.0)
        self._reader.join(timeout=5.0)
        self.model.close()

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._closing and not self._order:
                    self._condition.wait()
                if self._closing:
                    return
                job = self._next()
                self._running = job
                if self._ahead:
                    self._condition.notify_all()
                reading = self._reading
            if job is not None and reading is not None and reading.owner != job.owner:
                reading.stop()  # it began beside its owner's generation, and this is another's
            if job is not None:
                job.run(self.model)
                # Before the loop hears of it, or the next one would seem to wait for this one.
                with self._condition:
                    self._running = None
                    if self._ahead:
                        self._condition.notify_all()
                job.finish()

    def _read_ahead(self) -> None:
        while True:
            with self._condition:
                while (job := self._readable()) is None and not self._closing:
                    self._condition.wait()
                if job is None or self._closing:
                    return
                self._reading = self._ahead.pop(job.owner)
            job.run(self.model)
            with self._condition:
                self._reading = None
            job.finish()

    def _readable(self) -> GenerationJob | None:
        """The next prompt to read ahead: while a generation runs only its owner's, else any."""
        if self._running is not None:
            return self._ahead.get(self._running.owner)
        return None if self._order else next(iter(self._ahead.values()), None)

    def _next(self) -> GenerationJob | None:
        owner = self._order.popleft()
        queue = self._queues[owner]
        job = queue.popleft() if queue else None
        if queue:
            self._order.append(owner)
        else:
            del self._queues[owner]
        return job
