"""Applications that share the state of a cluster's replicas, without Ray between them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from midstream.serving import stored
from midstream.serving.app import create_app
from midstream.serving.cluster import SharedState
from midstream.serving.limits import Limits
from midstream.serving.metrics import Family
from midstream.serving.replay import ReplayModel
from midstream.serving.requests import RequestError
from midstream.serving.running import serve
from midstream.serving.stored import Shelf, StoredResponse
from tests.helpers.wire import TOKEN


class Replica:
    """One of two replicas, in this process."""

    def __init__(self, name: str, shared: SharedState) -> None:
        self.shelf: Shelf = shared
        self._name = name
        self._shared = shared

    async def exchange(self, own: Sequence[Family]) -> Mapping[str, Sequence[Family]]:
        return await self._shared.exchange(self._name, own)


@asynccontextmanager
async def serving(*replicas: Replica) -> AsyncGenerator[list[AsyncOpenAI]]:
    """A client of each replica; a text of words at a pace, or "alpha beta" for "go"."""
    async with AsyncExitStack() as stack:
        clients: list[AsyncOpenAI] = []
        for replica in replicas:
            model = ReplayModel(
                lambda request: (
                    "alpha beta" if request.messages[-1].text == "go" else "word " * 9999
                ),
                rate=200,
            )
            app = create_app({model.name: model}, token=TOKEN, replicas=replica)
            server = await stack.enter_async_context(serve(app))
            url = f"http://127.0.0.1:{server.port}/v1"
            client = AsyncOpenAI(base_url=url, api_key=TOKEN, max_retries=0)
            clients.append(await stack.enter_async_context(client))
        yield clients


async def test_a_response_of_one_replica_is_everywhere() -> None:
    shared = SharedState(Limits())
    async with serving(Replica("a", shared), Replica("b", shared)) as (one, other):
        made = await one.responses.create(input="go")
        assert await other.responses.retrieve(made.id) == made
        listed = await other.responses.input_items.list(made.id)
        assert listed.data[0].content[0].text == "go"  # type: ignore[union-attr]
        then = await other.responses.create(input="go", previous_response_id=made.id)
        assert (await one.responses.retrieve(then.id)).output_text == "alpha beta"
        await other.responses.delete(made.id)
        for client in (one, other):
            with pytest.raises(openai.NotFoundError, match="was deleted"):
                await client.responses.retrieve(made.id)


async def test_a_response_in_the_background_is_cancelled_from_another_replica() -> None:
    shared = SharedState(Limits())
    async with serving(Replica("a", shared), Replica("b", shared)) as (one, other):
        made = await one.responses.create(input="long", background=True)
        assert (await other.responses.retrieve(made.id)).status in ("queued", "in_progress")
        assert (await other.responses.cancel(made.id)).status == "cancelled"
        assert (await one.responses.retrieve(made.id)).status == "cancelled"
        again = await one.responses.create(input="long", background=True)
        await other.responses.delete(again.id)
        with pytest.raises(openai.NotFoundError):
            await one.responses.retrieve(again.id)
        alone = await one.responses.create(input="go")
        assert alone.output_text == "alpha beta", "what was cancelled runs no more"


async def test_what_a_replica_ran_when_it_ended_is_gone() -> None:
    shared = SharedState(Limits())
    async with serving(Replica("b", shared)) as (other,):
        async with serving(Replica("a", shared)) as (one,):
            made = await one.responses.create(input="long", background=True)
        with pytest.raises(openai.NotFoundError, match="the server that ran it has ended"):
            await other.responses.retrieve(made.id)


async def test_a_replica_that_was_killed_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_STOP_SECONDS", 0.1)
    shared = SharedState(Limits())
    async with serving(Replica("b", shared)) as (other,):
        ended = await other.responses.create(input="go")
        kept = await shared.get(ended.id)
        assert kept is not None
        await shared.put(StoredResponse("resp_lost", kept.response, kept.items, None, running=True))
        with pytest.raises(openai.InternalServerError, match="the response is lost"):
            await other.responses.cancel("resp_lost")
        with pytest.raises(openai.NotFoundError):
            await other.responses.retrieve("resp_lost")


async def test_metrics_of_all_replicas_have_their_names() -> None:
    shared = SharedState(Limits())
    async with serving(Replica("a", shared), Replica("b", shared)) as clients:
        one, other = clients
        for client in (one, one, other):
            await client.responses.create(input="go")

        async def metrics(client: AsyncOpenAI) -> str:
            url = str(client.base_url).replace("/v1/", "/metrics")
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
                return (await http.get(url)).text

        await metrics(one)  # A replica knows the last report of each other one.
        await metrics(other)
        for client in clients:
            text = await metrics(client)
            assert text.count("# TYPE midstream_tokens_total counter\n") == 1
            for name, count in (("a", 4), ("b", 2)):
                line = f'midstream_tokens_total{{replica="{name}",kind="output"}} {count}\n'
                assert line in text
                line = f'midstream_first_text_seconds_bucket{{replica="{name}",le="+Inf"}} '
                assert line in text


class Unreachable(SharedState):
    """Shared state that cannot be reached."""

    async def put(self, stored: StoredResponse) -> None:
        raise RequestError("It cannot be reached.", code="server_error", status=503)

    async def get(self, response_id: str) -> StoredResponse | None:
        raise RequestError("It cannot be reached.", code="server_error", status=503)


async def test_an_answer_comes_though_it_cannot_be_stored() -> None:
    async with serving(Replica("a", Unreachable(Limits()))) as (one,):
        made = await one.responses.create(input="go")
        assert made.output_text == "alpha beta"
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            await one.responses.retrieve(made.id)
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            await one.responses.create(input="go", background=True)
