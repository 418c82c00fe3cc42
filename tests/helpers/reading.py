"""Reads the bytes of an answer as the client does, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from midstream.responses.conversation import ToolCall
from midstream.responses.events import Delta, Failed, Finished, Reasoned, Retracted, ServerEvent
from midstream.responses.http_link import APIS
from midstream.responses.lane import Lane, PendingResponse
from midstream.responses.reading import AnswerReading, CutOffError
from midstream.responses.stream import Stream


class _Control:
    async def stop(self, stream: Stream, *, keep: bool) -> None:
        raise AssertionError("nothing is stopped here")

    async def steer(self, stream: Stream, text: str) -> Stream:
        raise AssertionError("nothing is steered here")


@dataclass(frozen=True)
class Read:
    """What an answer turned out to be.

    Attributes:
        text: All text that counts.
        ended: "completed", "incomplete", "failed", "cut off", or "refused" for no answer at all.
        why: The reason or the message.
        calls: Calls of tools: name and input.
        reasoned: Characters of thoughts.
        reasons: Whether an event said that the model reasons.
    """

    text: str
    ended: str
    why: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    reasoned: int = 0
    reasons: bool = field(default=False, compare=False)


def read_answer(api: str, chunks: Iterable[bytes], asked: str = "go") -> Read:
    """Read an answer in an API to the end."""
    return asyncio.run(_read(api, list(chunks), asked))


async def _read(api: str, chunks: list[bytes], asked: str) -> Read:
    lane = Lane(lambda turn: None, lambda turn, response: None)
    stream = Stream(_Control())
    lane.waiting.append(PendingResponse(stream, {}, messages=(("user", asked),)))
    events: list[ServerEvent] = []

    def deliver(event: ServerEvent) -> None:
        events.append(event)
        lane.handle(event)

    reading = AnswerReading(APIS[api].reader(), deliver)  # type: ignore[index]
    try:
        for chunk in chunks:
            reading.take(chunk)
        reading.end()
    except CutOffError:
        return Read(stream.arrived, "cut off")
    if not stream.done:
        return Read(stream.arrived, "refused", reading.said.decode("utf-8", "replace"))
    text, reasoned, reasons = "", 0, False
    async for event in stream:
        match event:
            case Delta():
                text += event.text
            case Retracted():
                text = ""
            case Reasoned():
                reasoned, reasons = event.characters, True
            case Finished():
                calls = [each for each in event.output if isinstance(each, ToolCall)]
                said = tuple((call.name, call.input) for call in calls)
                why = event.reason or ""
                return Read(text, event.status, why, said, reasoned, reasons)
            case Failed():
                return Read(text, "failed", event.message, (), reasoned)
            case _:
                pass
    raise AssertionError("no end")


def sse(event: object, name: str = "") -> bytes:
    """One server-sent event."""
    said = event if isinstance(event, str) else json.dumps(event)
    return (f"event: {name}\n" if name else "").encode() + f"data: {said}\n\n".encode()


def chat_chunk(content: Any = None, finish: Any = None, **delta: Any) -> dict[str, Any]:
    """One chunk of Chat Completions."""
    fields = delta if content is None else {"content": content, **delta}
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}


def pieces(text: str, size: int = 7) -> list[str]:
    """A text in pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def answer(
    api: str,
    text: str,
    word: str | None = None,
    *,
    closes: bool = True,
    parts: Iterable[str] | None = None,
) -> list[bytes]:
    """A text as an API streams it.

    Args:
        api: "responses", "chat" or "messages".
        text: The text.
        word: How the server says that it ends; ``None`` for its usual word, ``""`` for none.
        closes: Whether the event comes that closes the stream.
        parts: What its pieces hold.
    """
    parts = pieces(text) if parts is None else parts
    if api == "chat":
        said = "stop" if word is None else word
        events = [sse(chat_chunk("", role="assistant")), *map(sse, map(chat_chunk, parts))]
        events += [sse(chat_chunk(finish=said))] if said else []
        return [*events, *([b"data: [DONE]\n\n"] if closes else [])]
    if api == "messages":
        said = "end_turn" if word is None else word
        block = {"type": "text", "text": ""}
        begin = {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 3}}}
        told = [begin, {"type": "content_block_start", "index": 0, "content_block": block}]
        for piece in parts:
            delta = {"type": "text_delta", "text": piece}
            told.append({"type": "content_block_delta", "index": 0, "delta": delta})
        told.append({"type": "content_block_stop", "index": 0})
        told += [{"type": "message_delta", "delta": {"stop_reason": said}}] if said else []
        told += [{"type": "message_stop"}] if closes else []
        return [sse(event, str(event["type"])) for event in told]
    item = {"id": "i1", "type": "message"}
    told = [{"type": "response.created", "response": {"id": "r1"}}]
    told.append({"type": "response.output_item.added", "item": item})
    for piece in parts:
        told.append({"type": "response.output_text.delta", "item_id": "i1", "delta": piece})
    if word is None and closes:
        whole = {**item, "content": [{"type": "output_text", "text": text}]}
        response = {"id": "r1", "status": "completed", "output": [whole]}
        told.append({"type": "response.completed", "response": response})
    elif word:
        details = {"reason": word}
        response = {"id": "r1", "status": "incomplete", "incomplete_details": details}
        told.append({"type": "response.incomplete", "response": response})
    return [sse(event) for event in told]
