"""Answers as servers really stream them: what is complete, what is cut, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.responses.connection import read_message
from tests.helpers.reading import Read, answer, chat_chunk, pieces, read_answer, sse

APIS = ("responses", "chat", "messages")
TEXT = "<region>\ndef f(a):\n    return a  # é \U0001f600\n</region>\n"
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize("api", APIS)
def test_an_answer_is_complete_where_the_server_says_so(api: str) -> None:
    read = read_answer(api, answer(api, TEXT))
    assert (read.text, read.ended) == (TEXT, "completed")
    if api != "responses":  # The connection may close before the event that says so.
        read = read_answer(api, answer(api, TEXT, closes=False))
        assert (read.text, read.ended) == (TEXT, "completed")


@pytest.mark.parametrize(
    ("api", "begins"),
    [
        ("responses", {"type": "response.output_item.added", "item": {"type": "reasoning"}}),
        (
            "messages",
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "thinking", "thinking": ""},
            },
        ),
        (
            "messages",
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "redacted_thinking", "data": "x"},
            },
        ),
    ],
)
def test_reasoning_without_a_word_of_it_is_told(api: str, begins: dict[str, Any]) -> None:
    first, *rest = answer(api, TEXT)
    read = read_answer(api, [first, sse(begins, begins["type"]), *rest])
    assert (read.text, read.ended, read.reasons) == (TEXT, "completed", True)
    assert not read_answer(api, [first, *rest]).reasons


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("closes", [True, False])
def test_an_answer_that_ends_without_a_word_is_cut(api: str, closes: bool) -> None:
    read = read_answer(api, answer(api, TEXT, "", closes=closes))
    assert (read.text, read.ended) == (TEXT, "incomplete")
    assert read.why == "the server ended it without saying that it is complete"


@pytest.mark.parametrize("word", ["stop", "STOP", "tool_calls", "end_turn", "eos", "COMPLETE"])
@pytest.mark.parametrize("api", ["chat", "messages"])
def test_the_words_of_other_apis_complete_an_answer(api: str, word: str) -> None:
    assert read_answer(api, answer(api, TEXT, word)).ended == "completed"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("max_output_tokens", "max_output_tokens"),
        ("content_filter", "content_filter"),
        ("cancelled", "the server cancelled it"),
        ("odd_new_reason", "odd_new_reason"),
    ],
)
def test_other_words_mean_that_it_was_cut(api: str, word: str, why: str) -> None:
    read = read_answer(api, answer(api, TEXT, word))
    assert (read.text, read.ended) == (TEXT, "incomplete")
    assert why in read.why


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("length", "max_output_tokens"),
        ("MAX_TOKENS", "max_output_tokens"),
        ("SAFETY", "content_filter"),
        ("abort", "the server aborted it"),
        ("error", "the server failed midway"),
        ({"type": "length"}, "max_output_tokens"),
        ({"odd": 1}, '{"odd":1}'),
    ],
)
def test_reasons_of_gateways_and_engines(word: Any, why: str) -> None:
    read = read_answer("chat", [sse(chat_chunk("x")), sse(chat_chunk(finish=word)), DONE])
    assert read.ended == "incomplete"
    assert why in read.why


def test_the_first_word_that_says_that_it_was_cut_counts() -> None:
    chunks = [sse(chat_chunk("x", "length")), sse(chat_chunk(finish="stop")), DONE]
    assert read_answer("chat", chunks).why == "max_output_tokens"
    both = [sse(chat_chunk("x", "tool_calls")), sse(chat_chunk(finish="stop")), DONE]
    assert read_answer("chat", both).ended == "completed"


ERRORS: dict[str, list[bytes]] = {
    "responses": [
        sse({"type": "error", "code": "server_error", "message": "No memory."}),
        sse({"type": "error", "error": {"message": "No memory."}}),
        sse({"message": "No memory."}, "error"),
        sse({"type": "response.failed", "response": {"error": {"message": "No memory."}}}),
        sse({"error": "No memory."}),
    ],
    "chat": [
        sse({"error": {"message": "No memory.", "code": 500, "type": None}}),
        sse({"error": "No memory."}),
        sse({"object": "error", "message": "No memory.", "code": 400}),
        sse({"detail": "No memory."}),
        sse({"message": "No memory."}, "error"),
        b'error: {"message": "No memory."}\n\n',
        b"event: error\ndata: No memory.\n\n",
        b'{"error": {"message": "No memory."}}\n',
    ],
    "messages": [
        sse({"type": "error", "error": {"type": "overloaded_error", "message": "No memory."}}),
        sse({"type": "error", "error": "No memory."}),
        sse({"error": {"message": "No memory."}}, "error"),
        sse({"type": "error", "message": "No memory."}),
    ],
}


@pytest.mark.parametrize(("api", "error"), [(a, e) for a, es in ERRORS.items() for e in es])
def test_an_error_among_the_events_fails_the_answer_in_its_words(api: str, error: bytes) -> None:
    begun = answer(api, "def f", "", closes=False)
    for rest in ([], [DONE], answer(api, "", None)[1:]):
        read = read_answer(api, [*begun, error, *rest])
        assert (read.text, read.ended, read.why) == ("def f", "failed", "No memory.")
    if not error.startswith(b"{"):
        assert read_answer(api, [error, DONE]).why == "No memory."


@pytest.mark.parametrize("error", [None, {}, "", {"code": None, "message": None}])
def test_an_empty_error_is_none(error: Any) -> None:
    end = {"id": "r1", "status": "completed", "output": [], "error": error, "metadata": {"a": 1}}
    chunks = [*answer("responses", TEXT, "", closes=False)]
    chunks.append(sse({"type": "response.completed", "response": end}))
    assert read_answer("responses", chunks).ended == "completed"
    chunks = [sse({**chat_chunk(TEXT), "error": error}), *answer("chat", "")]
    assert read_answer("chat", chunks).ended == "completed"


# Framing

DRESSES: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "CR": lambda body: body.replace(b"\n", b"\r"),
    "BOM": lambda body: b"\xef\xbb\xbf" + body,
    "no space": lambda body: body.replace(b"data: ", b"data:"),
    "spaces": lambda body: body.replace(b"data: ", b"data:   ").replace(b"\n\n", b"  \n\n"),
    "comments": lambda body: b": ping\n\n:\n" + body.replace(b"\n\n", b"\n\n: ping\n\n"),
    "ids": lambda body: body.replace(b"data: ", b"id: 5\nretry: 1\ndata: "),
    "empty data": lambda body: b"data:\n\ndata\n\n" + body.replace(b"\n\n", b"\n\ndata: \n\n"),
    "no last blank line": lambda body: body.rstrip(b"\n"),
    "no blank lines": lambda body: body.replace(b"\n\n", b"\n"),
    "more blank lines": lambda body: body.replace(b"\n\n", b"\n\n\n"),
    "framed twice": lambda body: body.replace(b"data: ", b"data: data: "),
    "lines of JSON": lambda body: body.replace(b"data: ", b"").replace(b"event: ", b": "),
    "indented": lambda body: b"".join(
        line if line.startswith(b"event") or b"[DONE]" in line else _indented(line)
        for line in body.splitlines(keepends=True)
    ),
}


def _indented(line: bytes) -> bytes:
    if not line.strip():
        return line
    lines = json.dumps(json.loads(line.removeprefix(b"data: ")), indent=1).splitlines()
    return "".join(f"data: {each}\n" for each in lines).encode()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("dress", DRESSES)
def test_frames_are_read_in_every_dress(api: str, dress: str) -> None:
    body = DRESSES[dress](b"".join(answer(api, TEXT)))
    for size in (1, 5, len(body)):
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        read = read_answer(api, chunks)
        assert (read.text, read.ended) == (TEXT, "completed"), size


@given(st.data())
def test_the_pieces_of_a_stream_make_no_difference(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(APIS))
    body = DRESSES[data.draw(st.sampled_from(sorted(DRESSES)))](b"".join(answer(api, TEXT)))
    body = body[: data.draw(st.integers(1, len(body)))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(body)), max_size=12)))
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    read = read_answer(api, chunks)
    assert read == read_answer(api, [body])
    assert TEXT.startswith(read.text)
    assert read.ended != "completed" or read.text == TEXT


@given(st.binary(max_size=200), st.sampled_from(APIS))
def test_any_bytes_are_read_or_refused(body: bytes, api: str) -> None:
    try:
        read = read_answer(api, [body])
    except ValueError:
        return
    assert read.ended != "completed"


WHOLE: dict[str, dict[str, Any]] = {
    "responses": {
        "id": "r", "object": "response", "status": "completed",
        "output": [{"id": "i", "type": "message",
                    "content": [{"type": "output_text", "text": TEXT}]}],
    },
    "chat": {
        "id": 7, "object": "chat.completion", "usage": {"prompt_tokens": float("nan")},
        "choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}],
    },
    "messages": {
        "id": "m", "type": "message", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": TEXT}],
    },
}  # fmt: skip


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("framed", [True, False])
def test_an_answer_that_is_not_streamed_is_taken(api: str, indent: int, framed: bool) -> None:
    body = json.dumps(WHOLE[api], indent=indent)
    if framed:
        body = "".join(f"data: {line}\n" for line in body.splitlines()) + "\n"
    if framed and api == "responses":
        return  # An event of that API has a type.
    read = read_answer(api, [body.encode()])
    assert (read.text, read.ended) == (TEXT, "completed")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "body", [b'{"error": {"message": "No."}}', b'[{"error": {"message": "No."}}]',
             b"<!DOCTYPE html>\n<title>Log in</title>\n", b": ping\n\n{\"detail\": \"No.\"}\n"],
)  # fmt: skip
def test_what_comes_in_place_of_an_answer_is_handed_on(api: str, body: bytes) -> None:
    read = read_answer(api, [body])
    assert read.ended == "refused"
    assert "No." in read.why or "Log in" in read.why


def test_fields_of_other_types_are_taken_for_what_they_mean() -> None:
    chunks = [
        sse({**chat_chunk({"type": "text", "text": "a"}), "id": 12, "usage": None}),
        sse({**chat_chunk([{"type": "text", "text": "b"}, "c"]), "choices_extra": 1}),
        sse({"id": None, "choices": [{"index": None, "delta": {"content": 5}}, None]}),
        b'data: {"choices": [{"delta": {"content": "d"}, "logprobs": NaN}]}\n\n',
        sse({"choices": [], "prompt_filter_results": []}),
        sse({"choices": [{"index": 0, "finish_reason": None}]}),
        sse({"choices": [{"index": 0, "text": "e", "finish_reason": "null"}]}),
        sse({"choices": [{"index": 1, "delta": {"content": "another answer"}}]}),
        sse(chat_chunk(finish="stop")),
    ]
    read = read_answer("chat", chunks)
    assert (read.text, read.ended) == ("abc5de", "completed")


def test_text_that_cannot_be_read_makes_an_answer_incomplete() -> None:
    chunks = [sse(chat_chunk("a")), sse(chat_chunk({"odd": 1})), *answer("chat", "b")]
    read = read_answer("chat", chunks)
    assert (read.text, read.ended) == ("ab", "incomplete")
    assert read.why == "a part of its text could not be read"


@pytest.mark.parametrize("last", ["</region>\n", TEXT, TEXT.strip(), ""])
def test_a_last_message_may_repeat_what_was_streamed(last: str) -> None:
    end = chat_chunk(finish="stop")
    end["choices"][0]["message"] = {"content": last}
    read = read_answer("chat", [*map(sse, map(chat_chunk, pieces(TEXT))), sse(end)])
    assert (read.text, read.ended) == (TEXT, "completed")
    item = {"id": "i", "type": "message", "content": [{"type": "output_text", "text": last}]}
    final = {"id": "r1", "status": "completed", "output": [item]}
    chunks = answer("responses", TEXT, "", closes=False)
    chunks.append(sse({"type": "response.completed", "response": final}))
    read = read_answer("responses", chunks)
    assert (read.text, read.ended) == (TEXT, "completed")


def test_a_last_message_that_contradicts_makes_an_answer_incomplete() -> None:
    item = {"id": "i", "type": "message", "content": [{"type": "output_text", "text": "other"}]}
    final = {"id": "r1", "status": "completed", "output": [item]}
    chunks = answer("responses", TEXT, "", closes=False)
    chunks.append(sse({"type": "response.completed", "response": final}))
    assert read_answer("responses", chunks).why == "its last event contradicts its text"


@pytest.mark.parametrize("number", [lambda n: 1, lambda n: n % 5 + 1, lambda n: None])
def test_numbers_of_events_that_mean_nothing_lose_no_text(number: Callable[[int], Any]) -> None:
    chunks = answer("responses", "", "", closes=False)
    for n, piece in enumerate(pieces(TEXT, 4)):
        delta = {"type": "response.output_text.delta", "item_id": "i1", "delta": piece}
        chunks.append(sse({**delta, "sequence_number": number(n)}))
    final = {"id": "r1", "status": "completed", "output": []}
    chunks.append(sse({"type": "response.completed", "response": final}))
    read = read_answer("responses", chunks)
    assert (read.text, read.ended) == (TEXT, "completed")


@pytest.mark.parametrize("word", ["error", "stop"])
def test_an_error_beside_the_end_fails_the_answer(word: str) -> None:
    end = chat_chunk(finish=word)
    end["choices"][0]["error"] = {"code": 502, "message": "Upstream timed out"}
    read = read_answer("chat", [*answer("chat", TEXT, "")[:-1], sse(end)])
    assert (read.ended, read.why) == ("failed", "Upstream timed out")


@pytest.mark.parametrize("line", [b",\n", b", "])
def test_a_list_of_events_is_read_as_a_stream(line: bytes) -> None:
    events = [chunk[6:].strip() for chunk in answer("chat", TEXT)[:-1]]
    body = b"[" + line.join(events) + b"]"
    assert read_answer("chat", [body]) == read_answer("chat", answer("chat", TEXT))
    assert read_answer("chat", [body[:-1]]).ended in ("cut off", "refused")


def test_text_that_only_the_end_of_an_item_brings_is_taken() -> None:
    created, _, *_, completed = answer("responses", TEXT)
    content = [{"type": "output_text", "text": TEXT}]
    item = {"id": "i1", "type": "message", "content": content}
    done = {"type": "response.output_item.done", "item": item}
    empty = {"type": "response.completed", "response": {"id": "r1", "status": "completed"}}
    assert read_answer("responses", [created, sse(done), sse(empty)]).text == TEXT
    assert read_answer("responses", [created, sse(done), completed]).text == TEXT


@pytest.mark.parametrize(
    "note", [{"thought": True}, {"extra_content": {"google": {"thought": True}}}]
)
def test_content_that_is_marked_as_a_thought_is_no_text(note: dict[str, Any]) -> None:
    draft = {"choices": [{"index": 0, "delta": {"content": "x = 2\n", **note}}]}
    frames = [b"data: " + json.dumps(draft).encode() + b"\n\n", *answer("chat", "x = 1\n")]
    assert read_answer("chat", frames) == Read("x = 1\n", "completed", reasoned=6)


def test_a_reason_that_comes_with_the_beginning_completes_nothing() -> None:
    frames = answer("messages", "x = 1\n")
    begin = json.loads(frames[0].split(b"data: ")[1])
    begin["message"]["stop_reason"] = "end_turn"
    cut = [b"data: " + json.dumps(begin).encode() + b"\n\n", *frames[1:-2]]
    assert read_answer("messages", cut).ended == "incomplete"


@pytest.mark.parametrize(
    "message",
    [b"{0}\n{1}", b"data: {0}\n\ndata: {1}\n\n", b"event: x\ndata: {0}\n\ndata: {1}", b"[{0},{1}]"],
)
def test_messages_of_a_websocket_may_hold_several_events_or_frames(message: bytes) -> None:
    made, text = (
        json.dumps({"type": f"response.{kind}", "delta": "é"}).encode()
        for kind in ("created", "output_text.delta")
    )
    events = read_message(message.replace(b"{0}", made).replace(b"{1}", text))
    assert [event.type for event in events] == ["response.created", "response.output_text.delta"]


@pytest.mark.parametrize("message", [b"", b" \n", b"ping", b"[DONE]", b": keep-alive\n\n", b"{}"])
def test_signs_of_life_on_a_websocket_are_no_errors(message: bytes) -> None:
    assert not [event for event in read_message(message) if event.type]


@pytest.mark.parametrize(
    ("message", "said"),
    [(b'{"error": {"message": "no such model"}}', "no such model"),
     (b'{"detail": "Unauthorized"}', "Unauthorized"),
     (b'event: error\ndata: {"message": "gone"}\n\n', "gone")],
)  # fmt: skip
def test_errors_on_a_websocket_need_no_type(message: bytes, said: str) -> None:
    [event] = read_message(message)
    assert event.type == "error"
    assert event.error is not None
    assert event.error.message == said


@pytest.mark.parametrize(
    "message", [b'{"type": "response.out', b"<html><body>Bad gateway</body></html>"]
)
def test_a_message_of_a_websocket_that_is_cut_is_not_skipped(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut|Bad gateway|response"):
        read_message(message)


def test_a_refusal_is_quoted_and_is_no_text() -> None:
    said = "I cannot help with that."
    chunks = [*(sse(chat_chunk(refusal=piece)) for piece in pieces(said)), *answer("chat", "")]
    read = read_answer("chat", chunks)
    assert (read.text, read.ended) == ("", "incomplete")
    assert read.why == f'the model declined: "{said}"'
    part = {"type": "refusal", "refusal": said}
    final = {"id": "r1", "status": "completed", "output": [{"type": "message", "content": [part]}]}
    chunks = answer("responses", "", "", closes=False)
    chunks.append(sse({"type": "response.completed", "response": final}))
    assert read_answer("responses", chunks).why == f'the model declined: "{said}"'


# Calls of tools


def _call(call_id: str | None, name: str | None, arguments: Any, index: int | None = None) -> bytes:
    given = {"name": name, "arguments": arguments}
    call: dict[str, Any] = {"function": {k: v for k, v in given.items() if v is not None}}
    call |= {} if call_id is None else {"id": call_id}
    call |= {} if index is None else {"index": index}
    return sse(chat_chunk(tool_calls=[call]))


def _arguments(text: str) -> str:
    return json.dumps({"input": text})


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("whole", [True, False])
def test_several_calls_under_one_index_or_none_are_told_apart(
    index: int | None, whole: bool
) -> None:
    chunks: list[bytes] = []
    for number, name in enumerate(("a.py", "b.py", "c.py")):
        if whole:
            chunks.append(_call(f"call-{number}", "read_file", _arguments(name), index))
            continue
        chunks.append(_call(f"call-{number}", "read_file", "", index))
        chunks += [_call(None, None, piece, index) for piece in pieces(_arguments(name), 3)]
    read = read_answer("chat", [*chunks, sse(chat_chunk(finish="tool_calls")), DONE])
    assert read.calls == tuple(("read_file", name) for name in ("a.py", "b.py", "c.py"))


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_a_call_may_be_named_after_its_arguments_have_begun(index: dict[str, int]) -> None:
    begun = {"id": "c1", "function": {"arguments": '{"inp'}, **index}
    named = {"id": "c1", "function": {"name": "f", "arguments": 'ut": "x"}'}, **index}
    events = [chat_chunk(tool_calls=[begun]), chat_chunk(tool_calls=[named])]
    read = read_answer("chat", [*map(sse, (*events, chat_chunk(finish="tool_calls"))), DONE])
    assert (read.calls, read.ended) == ((("f", "x"),), "completed")
    cut = read_answer("chat", [*map(sse, (events[0], chat_chunk(finish="tool_calls"))), DONE])
    assert cut.ended == "incomplete"


def test_interleaved_calls_and_repeated_ids_are_put_together() -> None:
    first, second = pieces(_arguments("a.py"), 4), pieces(_arguments("b.py"), 4)
    chunks = [_call("1", "read_file", "", 0), _call("2", "read_file", "", 1)]
    for one, two in zip(first, second, strict=True):
        chunks += [_call("1", "read_file", one, 0), _call("", "", two, 1)]
    read = read_answer("chat", [*chunks, sse(chat_chunk(finish="tool_calls"))])
    assert read.calls == (("read_file", "a.py"), ("read_file", "b.py"))


def test_a_message_with_whole_calls_is_taken() -> None:
    block = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"input": "a.py"}}
    whole = {"type": "message", "content": [block], "stop_reason": "tool_use"}
    assert read_answer("messages", [json.dumps(whole).encode()]).calls == (("read_file", "a.py"),)
    given = {"name": "read_file", "arguments": {"input": "a.py"}}
    message = {"content": None, "tool_calls": [{"id": "t", "function": given}]}
    choice = {"message": message, "finish_reason": "tool_calls"}
    read = read_answer("chat", [json.dumps({"choices": [choice]}).encode()])
    assert read.calls == (("read_file", "a.py"),)
