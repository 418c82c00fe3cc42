"""One response from ``response.created`` to its terminal event.

The turn's own task sends all its events, so their order and numbers cannot go wrong; stopping and
steering only set a mark and wake that task. Which transport carries the events and which turn
comes next is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from msgspec.structs import replace

from midstream.engine.types import FinishReason, GenerateRequest, Message
from midstream.errors import UserError
from midstream.responses.events import ErrorCode
from midstream.responses.model_info import METADATA_PREFIX, ModelInfo
from midstream.serving.client_tools import client_step
from midstream.serving.conversations import StoredConversation
from midstream.serving.forced_calls import NotCalledError, forced_call
from midstream.serving.limits import Limits
from midstream.serving.logs import fault
from midstream.serving.metrics import Metrics
from midstream.serving.output import Event, Output
from midstream.serving.requests import CreateRequest, FinishedAnswer, without_namespaces
from midstream.serving.rewrites import as_edits, tool_report
from midstream.serving.tools import OfferedTools, read_tools, tool_instructions
from midstream.serving.worker import GenerationJob, ModelWorker

_log = logging.getLogger(__name__)

Emit = Callable[[Event], Awaitable[None]]
"""Sends one event; waits while the peer does not read."""

TERMINAL_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Events that end a response."""

_EARLY_ENDS = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.REPETITION: "repetition",
}
"""The wire's reasons for answers that the model did not end itself."""

_FACT_LENGTH = 512
"""Characters of a value of metadata, as in OpenAI's API."""

_QUEUE_SECONDS = 1.0
"""How often a changed position in the queue is reported."""

_READING_SECONDS = 0.4
"""How often it is reported how much of a prompt has been read, for the first time as well."""


@dataclass(frozen=True, slots=True)
class AcceptedSteer:
    """An instruction that was accepted while a response was written."""

    id: str
    input: str | list[dict[str, Any]]
    messages: tuple[Message, ...]


class Interrupt(Enum):
    """The fate of the unfinished item when a response is interrupted."""

    DISCARD = "discard_partial_items"
    KEEP = "keep_partial_items"
    CANCEL = "cancel"
    """Everything goes: nothing can continue from the response."""


@dataclass(slots=True)
class _ResponseState:
    status: str = "in_progress"
    output: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    reason: str | None = None
    measured: dict[str, str] = field(default_factory=dict[str, str])


class ServedResponse:
    """One response.

    Args:
        request: What was asked for.
        history: The conversation, the request's own messages included.
        worker: The model's worker.
        emit: Sends an event. The turns of one queue in the worker have an equal one, as the bound
            method of a connection is.
        limits: Bounds of the server.
        metrics: Where the turn is counted.
        inherited_tools: Tools that earlier input items offer.

    Raises:
        RequestError: The model cannot do what is asked with tools.

    Attributes:
        id: Response id.
        status: "in_progress", then "completed", "incomplete" or "failed".
        steers: Instructions accepted and not yet answered, oldest first.
        conversation: What can be continued from; None until the end and after a failure.
        required: Stubs of the tool results the client has to supply.
    """

    def __init__(
        self,
        request: CreateRequest,
        history: tuple[Message, ...],
        worker: ModelWorker,
        emit: Emit,
        *,
        limits: Limits,
        metrics: Metrics,
        inherited_tools: tuple[dict[str, Any], ...] = (),
    ) -> None:
        self.id = f"resp_{secrets.token_hex(16)}"
        self.request = request
        self.history = history
        self.steers: list[AcceptedSteer] = []
        self.conversation: StoredConversation | None = None
        self._worker = worker
        self._send = emit
        self._limits = limits
        self._metrics = metrics
        self._created_at = time.time()
        self._sequence = 0
        self._sending = asyncio.Lock()
        self._interrupt: Interrupt | None = None
        self._ending = False
        self._record = _ResponseState()
        model = ModelInfo().updated(worker.model.facts)
        self._additional_tools = (*inherited_tools, *request.additional_tools)
        tools = without_namespaces((*(request.tools or ()), *self._additional_tools))
        use = read_tools(tools, request.tool_choice)
        works = model.is_edit_model and request.generate
        self._step = client_step(history, tools, use, model) if works else None
        if self._step is not None:
            messages, self._said, forced = self._step.messages, self._step.said, self._step.call
        else:
            messages = as_edits(history) if model.is_edit_model else history
            self._said = tool_report(messages) if works else ""
            may_force = request.generate and not self._said
            forced = forced_call(use, model, messages) if may_force else None
        self._must_call = use.required and forced is None and request.generate and not self._said
        self._single_call = request.parallel_tool_calls is False
        self._output = Output(use, forced, single=self._single_call)
        instructions = request.instructions or ""
        if model.is_chat:
            told = tool_instructions(tools, use)
            instructions = f"{instructions}\n\n{told}".strip() if told else instructions
        self._next_event = 0.0
        self._reading_due = 0.0
        self._job = GenerationJob(
            GenerateRequest(
                messages=messages,
                instructions=instructions,
                max_output_tokens=request.max_output_tokens,
                temperature=request.temperature or 0.0,
                top_p=1.0 if request.top_p is None else request.top_p,
                seed=request.seed,
                generate=request.generate,
                # Sampled text differs each time and cannot be read ahead; edits are not sampled, or
                # by a seed.
                prose=model.is_chat and bool(request.temperature) and request.seed is None,
                correction=request.correction,
                must_change=request.must_change,
            ),
            owner=emit,
        )

    @property
    def status(self) -> str:
        return self._record.status

    @property
    def active(self) -> bool:
        """Whether it can still be stopped or steered."""
        return not self._ending and self._interrupt is None

    @property
    def interrupted(self) -> bool:
        return self._interrupt is not None

    @property
    def required(self) -> tuple[dict[str, Any], ...]:
        """Stubs of the tool results that the conversation waits for."""
        return self.conversation.required if self.conversation is not None else ()

    def interrupt(self, mode: Interrupt) -> None:
        """Stop as soon as the model has ended its forward pass."""
        self._interrupt = mode
        self._worker.cancel(self._job)
        self._job.nudge()

    def steer(self, steer: AcceptedSteer) -> None:
        """Accept an instruction; the text ends with the current line."""
        self.steers.append(steer)
        self._job.stop_at_line_end()

    def release(self) -> None:
        """Release the texts after the end; late stops and steers are still answered."""
        self.history = ()
        self.request = replace(self.request, input="", instructions=None, tools=None)
        self._job.request = GenerateRequest(())
        self._output = Output(OfferedTools({}))
        self._record.output = []

    def abandon(self) -> None:
        """Stop because the peer has gone."""
        self._worker.cancel(self._job)

    async def emit(self, event: Event) -> None:
        """Send an event with its sequence number and lane."""
        async with self._sending:
            event["sequence_number"] = self._sequence
            self._sequence += 1
            if self.request.stream_id is not None:
                event["stream_id"] = self.request.stream_id
            await self._send(event)

    async def run(self) -> None:
        """Send everything from created to the terminal event.

        Raises:
            Exception: Only what ``emit`` raises; trouble of the model ends as ``response.failed``.
        """
        try:
            await self.emit({"type": "response.created", "response": self.wire()})
            if self._said:
                await self._tell()
            else:
                self._worker.submit(self._job)
                await self._start()
                await self._stream()
            await self._close()
        finally:
            self.abandon()

    async def _tell(self) -> None:
        """Answer without the model, which has nothing to write."""
        self._job.finished = self._ending = True
        await self.emit({"type": "response.in_progress", "response": self.wire()})
        await self._write(self._said, 0)

    async def _start(self) -> None:
        began = time.perf_counter()
        shown = 0
        while not (self._job.started or self._job.finished or self._interrupt):
            ahead = self._worker.ahead(self._job)
            if ahead > 0 and ahead != shown:
                shown = ahead
                queued = self.wire()
                queued["status"] = "queued"
                queued["metadata"]["midstream.queue_ahead"] = str(ahead)
                await self.emit({"type": "response.queued", "response": queued})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_QUEUE_SECONDS):
                    await self._job.wait()
        self._metrics.waiting.observe(time.perf_counter() - began)
        await self.emit({"type": "response.in_progress", "response": self.wire()})

    async def _stream(self) -> None:
        loop = asyncio.get_running_loop()
        job, unsent = self._job, 0
        self._reading_due = loop.time() + _READING_SECONDS
        while not self._interrupt:
            finished = job.finished
            text, tokens = job.take()
            # Tokens that made no text certain count with the next that does.
            unsent += tokens
            if reading := self._reading(loop.time()):
                response = self.wire()
                response["metadata"] |= reading
                await self.emit({"type": "response.in_progress", "response": response})
            if text:
                await self._write(text, unsent)
                unsent = 0
                self._next_event = loop.time() + self._limits.event_seconds
            if finished and not self._interrupt:
                self._ending = True
                return
            await job.wait()
            if loop.time() < self._next_event and not job.finished:
                await job.wait_until(self._next_event)
        self._ending = True
        await self.emit({"type": "response.interrupt.accepted", "response_id": self.id})
        while not job.finished:
            await job.wait()

    async def _write(self, text: str, tokens: int) -> None:
        options = self.request.stream_options
        counted = options is not None and options.midstream_tokens
        first = not self._output.begun
        for event in self._output.write(text):
            if counted and "delta" in event:
                event["tokens"], tokens = tokens, 0
            await self.emit(event)
            self._metrics.text_events += "delta" in event
        if first and self._output.begun:
            self._metrics.first_text.observe(time.time() - self._created_at)
        if self._output.called and self._single_call:
            self._worker.cancel(self._job)

    async def _close(self) -> None:
        job, record = self._job, self._record
        self._count()
        if job.error is not None and not self._interrupt:
            self._fail(job.error)
        elif self._interrupt is Interrupt.CANCEL:
            record.status = "cancelled"
        elif self._interrupt:
            await self._close_interrupted(self._interrupt)
        elif not self.request.generate:
            self._end("completed", None)
        else:
            steered = bool(self.steers) and job.finish_reason is FinishReason.STOPPED
            status, reason = "incomplete", "steered"
            if job.finish_reason in _EARLY_ENDS:
                reason = _EARLY_ENDS[job.finish_reason]
            elif not steered:
                status, reason = "completed", None
            try:
                events = self._object() if status == "completed" else []
                events += self._output.close(status)
                if self._must_call and status == "completed" and not self._output.called:
                    raise NotCalledError("a tool")
            except UserError as error:
                self._fail(error)
            else:
                for event in events:
                    await self.emit(event)
                self._end(status, reason)
        self._metrics.responses[record.status, record.reason or ""] += 1
        await self.emit({"type": f"response.{record.status}", "response": self.wire()})

    def _object(self) -> list[Event]:
        """Words in place of a call that the client should not run unseen."""
        usage, facts = self._job.usage, self._worker.model.facts
        threshold = float(facts.get("confidence_threshold", 0.0))
        objection = (
            "" if self._step is None else self._step.objection(self._output.text, usage, threshold)
        )
        return self._output.say_instead(objection) if objection else []

    async def _close_interrupted(self, mode: Interrupt) -> None:
        keep = mode is Interrupt.KEEP and self._output.begun
        for event in self._output.close("incomplete") if keep else self._output.discard():
            if event["type"] == "response.output_item.interrupted":
                event["response_id"] = self.id
            await self.emit(event)
        self._end("incomplete", "interrupted")

    def _end(self, status: str, reason: str | None) -> None:
        record, output = self._record, self._output
        record.status, record.reason, record.output = status, reason, output.wire()
        messages = self.history
        if record.output:
            kind = FinishedAnswer if status == "completed" else Message
            messages = (*messages, kind("assistant", output.text))
        required = output.required if status == "completed" else ()
        self.conversation = StoredConversation(
            self.id, messages, required, self.request.stream_id, self._additional_tools
        )

    def _fail(self, error: Exception) -> None:
        record = self._record
        record.status = "failed"
        if isinstance(error, UserError):
            record.error = {"code": "invalid_prompt", "message": str(error)}
        else:
            _log.error("a generation failed: %s", fault(error))
            sentence = f"The model failed ({type(error).__name__}); the server's log has details."
            record.error = {"code": ErrorCode.SERVER_ERROR, "message": sentence}

    def _count(self) -> None:
        usage, metrics = self._job.usage, self._metrics
        metrics.tokens["input"] += usage.input_tokens
        metrics.tokens["cached"] += usage.cached_tokens
        metrics.tokens["output"] += usage.output_tokens
        metrics.prefill_seconds += usage.prefill_s
        metrics.decode_seconds += usage.decode_s
        self._record.usage = {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
        self._record.measured = {
            METADATA_PREFIX + name: f"{value:.3f}" if isinstance(value, float) else str(value)
            for name, value in (*self._measured().items(), *self._judged().items())
        }

    def _measured(self) -> dict[str, int | float]:
        """Costs beyond the API's usage; the same names everywhere."""
        usage = self._job.usage
        paced: dict[str, int | float] = {}
        if usage.due_s is not None and usage.passed_s is not None:
            paced = {"due_ms": usage.due_s * 1000, "passed_ms": usage.passed_s * 1000}
        return {
            "queue_ms": self._job.queued_s * 1000,
            "prefill_ms": usage.prefill_s * 1000,
            "decode_ms": usage.decode_s * 1000,
            "forwards": usage.forwards,
            "drafted_tokens": usage.drafted_tokens,
            "accepted_tokens": usage.accepted_tokens,
            **paced,
        }

    def _judged(self) -> dict[str, float]:
        confidence = self._job.usage.confidence
        return {} if confidence is None else {"confidence": confidence}

    def _reading(self, now: float) -> dict[str, str]:
        """How much of a long prompt has been read, each time that it is to be told."""
        usage = self._job.usage
        if usage.output_tokens or not usage.read_tokens or now < self._reading_due:
            return {}
        self._reading_due = now + _READING_SECONDS
        counts = {"read_tokens": usage.read_tokens, "prompt_tokens": usage.input_tokens}
        return {METADATA_PREFIX + key: str(count) for key, count in counts.items()}

    def telemetry(self) -> dict[str, Any]:
        """The cost of the turn so far; ``midstream.serving.http`` names its fields."""
        usage = self._job.usage
        waiting = not (self._job.started or self._job.finished)
        return {
            "turn": hashlib.sha256(self.id.encode()).hexdigest()[:16],
            "model": self._worker.model.name,
            "status": "queued" if waiting else self.status,
            "queue_ahead": self._worker.ahead(self._job) if waiting else 0,
            **self._measured(),
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "tokens_per_second": usage.output_tokens / usage.decode_s if usage.decode_s else 0.0,
        }

    def wire(self) -> dict[str, Any]:
        request, record = self.request, self._record
        waiting = request.background and not (self._job.started or self._job.finished)
        return {
            "id": self.id,
            "object": "response",
            "created_at": int(self._created_at),
            "status": "queued" if waiting else record.status,
            "background": bool(request.background),
            "error": record.error,
            "incomplete_details": None if record.reason is None else {"reason": record.reason},
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": {
                **(request.metadata or {}),
                **_facts(self._worker.model.facts),
                **record.measured,
            },
            "model": request.model or self._worker.model.name,
            "output": record.output,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "reasoning": {"effort": request.effort},
            "service_tier": "default",
            "store": request.keep,
            "temperature": request.temperature or 0.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": request.tool_choice or "auto",
            "tools": request.tools or [],
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "truncation": "disabled",
            "usage": record.usage,
        }


def _facts(facts: Mapping[str, str]) -> dict[str, str]:
    return {METADATA_PREFIX + name: value[:_FACT_LENGTH] for name, value in facts.items()}
