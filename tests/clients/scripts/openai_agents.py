"""The package openai-agents: an agent that calls a function. Arguments: address, key, model."""

import asyncio
import sys

from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

URL, KEY, MODEL = sys.argv[1:4]
read: list[str] = []


@function_tool
def read_file(path: str) -> str:
    """Read a file."""
    read.append(path)
    return "print(1)"


async def main() -> None:
    set_tracing_disabled(True)
    model = OpenAIResponsesModel(MODEL, AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0))
    for choice in ("auto", "required", "read_file"):
        agent = Agent(
            name="reader",
            instructions="Read files.",
            model=model,
            tools=[read_file],
            model_settings=ModelSettings(tool_choice=choice),
        )
        result = await Runner.run(agent, "What is in a.py?")
        assert result.final_output == "It prints 1.", result.final_output
        streamed = Runner.run_streamed(agent, "What is in a.py?")
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output == "It prints 1."


asyncio.run(main())
assert read == ["a.py"] * 6, read
