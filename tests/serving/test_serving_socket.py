"""The order and content of the frames of one response, and what stops or steers it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from midstream.engine.types import FinishReason, GenerateRequest, Piece
from midstream.errors import UserError
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayGeneration, ReplayModel
from tests.helpers.wire import Peer, eventually, peer, running

EVERY = Limits(event_seconds=0.0)


def numbered(client: Peer, response: dict[str, object]) -> None:
    """All frames of one response are numbered from 0 without a gap."""
    numbers = [event["sequence_number"] for event in client.seen if event["type"] != "error"]
    assert numbers == list(range(len(numbers)))


async def test_a_text_response_has_the_documented_order() -> None:
    async with running("alpha beta gamma") as port, peer(port) as client:
        await client.create(metadata={"mine": "yes"})
        terminal = await client.terminal()
    deltas = [kind for kind in client.types if kind == "response.output_text.delta"]
    assert [kind for kind in client.types if kind != "response.output_text.delta"] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert deltas
    numbered(client, terminal)
    assert client.text() == "alpha beta gamma"
    response = terminal["response"]
    assert response["output"][0]["content"][0]["text"] == "alpha beta gamma"
    assert response["usage"]["output_tokens"] == 3
    assert response["usage"]["total_tokens"] == response["usage"]["input_tokens"] + 3
    assert response["metadata"]["mine"] == "yes"
    assert response["metadata"]["midstream.edit_format"] == "region"
    assert client.seen[0]["response"]["status"] == "in_progress"


async def test_text_events_are_told_apart_up_to_200_a_second_and_joined_above() -> None:
    async with running("word " * 60, rate=40) as port, peer(port) as client:
        await client.create()
        await client.terminal()
        slow = client.types.count("response.output_text.delta")
    async with running("word " * 2000, rate=4000) as port, peer(port) as client:
        began = time.perf_counter()
        await client.create()
        await client.terminal()
        seconds = time.perf_counter() - began
        fast = client.types.count("response.output_text.delta")
    assert slow > 30
    assert 1 < fast <= seconds * 200 + 2
    assert client.text() == "word " * 2000


async def test_a_continuation_gets_the_whole_conversation() -> None:
    seen: list[GenerateRequest] = []

    def echo(request: GenerateRequest) -> str:
        seen.append(request)
        return f"answer {len(seen)}"

    async with running(ReplayModel(echo)) as port, peer(port) as client:
        await client.create("first", instructions="be brief")
        first = (await client.terminal())["response"]["id"]
        await client.create("second", previous_response_id=first)
        second = (await client.terminal())["response"]
        await client.create("fork", previous_response_id=first)
        await client.terminal()
    assert [(m.role, m.text) for m in seen[1].messages] == [
        ("user", "first"),
        ("assistant", "answer 1"),
        ("user", "second"),
    ]
    assert seen[0].instructions == "be brief"
    assert seen[1].instructions == "", "instructions are not inherited"
    assert second["previous_response_id"] == first
    assert [m.text for m in seen[2].messages] == ["first", "answer 1", "fork"]


async def test_warm_up_gives_an_id_to_chain_from_and_no_output() -> None:
    async with running() as port, peer(port) as client:
        await client.create([], generate=False)
        warm = await client.terminal()
        assert client.types == ["response.created", "response.in_progress", "response.completed"]
        assert warm["response"]["output"] == []
        assert warm["response"]["usage"]["output_tokens"] == 0
        await client.create("go", previous_response_id=warm["response"]["id"])
        assert (await client.terminal())["type"] == "response.completed"


async def test_interrupt_discards_the_partial_item_and_keeps_the_socket() -> None:
    seen: list[GenerateRequest] = []

    def words(request: GenerateRequest) -> str:
        seen.append(request)
        return "word " * 500

    async with running(ReplayModel(words, rate=100)) as port, peer(port) as client:
        await client.create("first")
        created = await client.until("response.created")
        await client.until("response.output_text.delta")
        await client.send(type="response.interrupt", response_id=created["response"]["id"])
        terminal = await client.terminal()
        assert client.types[-3:] == [
            "response.interrupt.accepted",
            "response.output_item.interrupted",
            "response.incomplete",
        ]
        numbered(client, terminal)
        assert terminal["response"]["incomplete_details"] == {"reason": "interrupted"}
        assert terminal["response"]["output"] == []
        assert 0 < terminal["response"]["usage"]["output_tokens"] < 100
        await client.create("second", previous_response_id=terminal["response"]["id"])
        await client.until("response.output_text.delta")
        await client.send(type="response.interrupt", response_id=created["response"]["id"])
        late = await client.until("response.interrupt.failed")
        assert late["response_id"] == created["response"]["id"]
    assert [m.text for m in seen[1].messages] == ["first", "second"]


async def test_interrupt_can_keep_exactly_what_was_sent() -> None:
    seen: list[GenerateRequest] = []

    def words(request: GenerateRequest) -> str:
        seen.append(request)
        return " ".join(str(n) for n in range(900))

    async with running(ReplayModel(words, rate=300)) as port, peer(port) as client:
        await client.create("first")
        created = await client.until("response.created")
        for _ in range(3):
            await client.until("response.output_text.delta")
        await client.send(
            type="response.interrupt",
            response_id=created["response"]["id"],
            mode="keep_partial_items",
        )
        terminal = await client.terminal()
        kept = terminal["response"]["output"][0]
        assert kept["status"] == "incomplete"
        assert kept["content"][0]["text"] == client.text()
        await client.create("second", previous_response_id=terminal["response"]["id"])
        await client.until("response.output_text.delta")
    assert seen[1].messages[1].text == kept["content"][0]["text"]


async def test_a_steered_response_ends_with_its_line_and_goes_on_by_itself() -> None:
    seen: list[GenerateRequest] = []

    def lines(request: GenerateRequest) -> str:
        seen.append(request)
        return "one two three four five six seven\n" * 40 if len(seen) == 1 else "done"

    async with running(ReplayModel(lines, rate=150)) as port, peer(port) as client:
        await client.create("first", instructions="rules", stream_id="lane")
        created = await client.until("response.created")
        await client.until("response.output_text.delta")
        await client.send(
            type="response.steer",
            previous_response_id=created["response"]["id"],
            input="other way",
        )
        accepted = await client.until("response.steer.accepted")
        assert accepted["stream_id"] == "lane"
        steered = await client.terminal()
        assert steered["response"]["incomplete_details"] == {"reason": "steered"}
        kept = steered["response"]["output"][0]["content"][0]["text"]
        assert kept.endswith("seven\n")
        assert kept.count("\n") < 10
        successor = await client.until("response.created")
        assert successor["response"]["previous_response_id"] == created["response"]["id"]
        assert (await client.terminal())["response"]["status"] == "completed"
        await client.send(
            type="response.steer", previous_response_id=created["response"]["id"], input="late"
        )
        failed = await client.until("response.steer.failed")
        assert failed["error"]["code"] == "response_already_completed"
        assert failed["steer"]["input"] == "late"
    assert [(m.role, m.text) for m in seen[1].messages] == [
        ("user", "first"),
        ("assistant", kept),
        ("user", "other way"),
    ]
    assert seen[1].instructions == "rules"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"previous_response_id": "resp_none", "input": "x"}, "response_not_found"),
        ({"input": "x"}, "response_not_found"),
        ({"previous_response_id": "RUNNING", "input": []}, "invalid_input"),
        ({"previous_response_id": "RUNNING", "input": "x", "stream_id": "a"}, "invalid_input"),
        (
            {"previous_response_id": "RUNNING", "input": [{"role": "system", "content": "x"}]},
            "invalid_input",
        ),
    ],
)
async def test_a_steer_that_cannot_be_taken_comes_back(
    fields: dict[str, object], code: str
) -> None:
    async with running("word " * 200, rate=100) as port, peer(port) as client:
        await client.create()
        created = await client.until("response.created")
        if fields.get("previous_response_id") == "RUNNING":
            fields = fields | {"previous_response_id": created["response"]["id"]}
        await client.send(type="response.steer", **fields)
        failed = await client.until("response.steer.failed")
        assert failed["error"]["code"] == code
        assert failed["steer"]["input"] == fields["input"]
        assert "id" not in failed["steer"]


async def test_a_forced_custom_tool_streams_its_input_and_waits_for_the_result() -> None:
    tool = {"type": "custom", "name": "apply_patch", "description": "edits files"}
    seen: list[GenerateRequest] = []

    def patch(request: GenerateRequest) -> str:
        seen.append(request)
        return "*** Begin Patch\n" + "+line\n" * 30 + "*** End Patch\n"

    async with running(ReplayModel(patch, rate=300)) as port, peer(port) as client:
        await client.create(tools=[tool], tool_choice={"type": "custom", "name": "apply_patch"})
        created = await client.until("response.created")
        await client.until("response.custom_tool_call_input.delta")
        terminal = await client.terminal()
        call = terminal["response"]["output"][0]
        assert call["type"] == "custom_tool_call"
        assert call["input"].endswith("*** End Patch\n")
        deltas = [e["delta"] for e in client.seen if e["type"].endswith("input.delta")]
        assert "".join(deltas) == call["input"]
        assert client.types[-3:-1] == [
            "response.custom_tool_call_input.done",
            "response.output_item.done",
        ]
        result = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "ok"}
        await client.create([result], previous_response_id=created["response"]["id"])
        await client.terminal()
    assert [m.role for m in seen[1].messages] == ["user", "assistant", "tool"]


async def test_a_steer_waits_for_a_tool_result_and_goes_in_front_of_it() -> None:
    tool = {"type": "custom", "name": "apply_patch"}
    seen: list[GenerateRequest] = []

    def patch(request: GenerateRequest) -> str:
        seen.append(request)
        return "one line without an end " * 5

    async with running(ReplayModel(patch, rate=150)) as port, peer(port) as client:
        await client.create(tools=[tool], tool_choice="required")
        created = await client.until("response.created")
        target = created["response"]["id"]
        await client.until("response.custom_tool_call_input.delta")
        await client.send(type="response.steer", previous_response_id=target, input="and tests")
        accepted = await client.until("response.steer.accepted")
        await client.until("response.completed")
        pending = await client.until("response.steer.pending")
        assert pending["steer"]["id"] == accepted["steer"]["id"]
        assert pending["reason"] == "waiting_for_required_input"
        stub = pending["required_input"][0]
        await client.create([stub | {"output": "done"}], previous_response_id=target)
        await client.terminal()
    assert [(m.role, m.text) for m in seen[1].messages][2:] == [
        ("user", "and tests"),
        ("tool", "done"),
    ]


async def test_every_effort_of_the_api_is_taken_and_others_count_as_none_given() -> None:
    async with running() as port, peer(port) as client:
        for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra", None):
            await client.create(reasoning={"effort": effort})
            response = (await client.terminal())["response"]
            assert response["status"] == "completed"
            assert response["reasoning"]["effort"] == (None if effort == "ultra" else effort)


async def test_the_output_limit_ends_as_incomplete() -> None:
    async with running("a b c d e f") as port, peer(port) as client:
        await client.create(max_output_tokens=2)
        terminal = await client.terminal()
    assert terminal["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert client.text() == "a b"
    assert terminal["response"]["output"][0]["status"] == "incomplete"


async def test_an_answer_that_goes_round_in_circles_ends_as_incomplete() -> None:
    class Circles(ReplayGeneration):
        def __iter__(self) -> Iterator[Piece]:
            yield from super().__iter__()
            self.finish_reason = FinishReason.REPETITION

    class Circling(ReplayModel):
        def start(self, request: GenerateRequest) -> ReplayGeneration:
            return Circles("a a a a", 0.0, 0.0, request)

    async with running(Circling("", 0.0)) as port, peer(port) as client:
        await client.create()
        terminal = await client.terminal()
    assert terminal["response"]["status"] == "incomplete"
    assert terminal["response"]["incomplete_details"] == {"reason": "repetition"}
    assert client.text() == "a a a a"


async def test_trouble_of_the_model_ends_the_response_and_not_the_connection() -> None:
    def trouble(request: GenerateRequest) -> str:
        match request.messages[-1].text:
            case "user":
                raise UserError("This model rewrites marked regions only; mark one.")
            case "bug":
                raise RuntimeError("secret detail")
            case text:
                return text

    async with running(ReplayModel(trouble)) as port, peer(port) as client:
        await client.create("user")
        failed = await client.terminal()
        assert failed["response"]["error"] == {
            "code": "invalid_prompt",
            "message": "This model rewrites marked regions only; mark one.",
        }
        await client.create("bug")
        failed = await client.terminal()
        assert failed["response"]["error"]["code"] == "server_error"
        assert "secret" not in failed["response"]["error"]["message"]
        await client.create("fine")
        assert (await client.terminal())["type"] == "response.completed"


async def test_a_fault_of_the_server_ends_the_response_and_not_the_connection() -> None:
    def script(request: GenerateRequest) -> str:
        # Half of a surrogate pair cannot be sent.
        return "\ud800" if request.messages[-1].text == "bad" else "good"

    async with running(ReplayModel(script)) as port, peer(port) as client:
        await client.create("bad")
        error = await client.until("error")
        assert (error["status"], error["error"]["code"]) == (500, "server_error")
        await client.create("good")
        assert (await client.terminal())["type"] == "response.completed"


async def test_closing_the_socket_stops_the_generation() -> None:
    started: list[ReplayGeneration] = []

    class Watched(ReplayModel):
        def start(self, request: GenerateRequest) -> ReplayGeneration:
            started.append(super().start(request))
            return started[-1]

    async def stopped() -> bool:
        return started[0].finish_reason is FinishReason.STOPPED

    model = Watched("word " * 100_000, rate=1000)
    async with running(model) as port:
        async with peer(port) as client:
            await client.create()
            await client.until("response.output_text.delta")
        await eventually(stopped)


async def test_lanes_are_first_in_first_out_and_echo_their_name() -> None:
    def echo(request: GenerateRequest) -> str:
        return request.messages[-1].text

    async with running(ReplayModel(echo)) as port, peer(port) as client:
        for n in range(3):
            await client.create(f"a{n}", stream_id="a")
            await client.create(f"b{n}", stream_id="b")
        await client.create("plain")
        texts: dict[str | None, list[str]] = {}
        for _ in range(7):
            done = await client.terminal()
            lane = done.get("stream_id")
            texts.setdefault(lane, []).append(done["response"]["output"][0]["content"][0]["text"])
    assert texts == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"], None: ["plain"]}
    for lane in ("a", "b", None):
        frames = [event for event in client.seen if event.get("stream_id") == lane]
        running_ids = [e["response"]["id"] for e in frames if "response" in e]
        assert running_ids == sorted(running_ids, key=running_ids.index), "turns of a lane overlap"


async def test_a_response_that_waits_for_the_engine_says_so() -> None:
    async with running("word " * 60, rate=200) as port, peer(port) as first, peer(port) as other:
        await first.create()
        await first.until("response.output_text.delta")
        await other.create()
        queued = await other.until("response.queued")
        assert queued["response"]["status"] == "queued"
        assert queued["response"]["metadata"]["midstream.queue_ahead"] == "1"
        await first.terminal()
        assert (await other.terminal())["type"] == "response.completed"
        numbered(other, queued)


async def test_token_counts_travel_only_when_asked_for() -> None:
    async with running("a b c d", limits=EVERY) as port, peer(port) as client:
        await client.create()
        await client.terminal()
        assert all("tokens" not in event for event in client.seen)
        client.seen.clear()
        await client.create(stream_options={"midstream_tokens": True})
        await client.terminal()
    assert sum(e.get("tokens", 0) for e in client.seen if e["type"].endswith("text.delta")) == 4


async def test_what_is_typed_and_read_drives_out_no_answer() -> None:
    limits = Limits(cached_responses=4)
    async with running("an answer", limits=limits) as port, peer(port) as client:
        await client.create("ask", store=False)
        answer = (await client.terminal())["response"]["id"]
        for number in range(12):
            await client.create(f"typed {number}", stream_id="ahead", generate=False, store=False)
            read = (await client.terminal())["response"]["id"]
        for known in (answer, read):
            await client.create("go on", previous_response_id=known)
            assert (await client.terminal())["type"] == "response.completed"
