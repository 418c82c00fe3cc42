"""Anthropic's and OpenAI's own clients: do they take the requests, and read the scripted server?

Arguments: the address of the server, and a file with requests that Midstream has sent, as JSON
lines of an API and a body.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anthropic
import openai
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError

url, requests = sys.argv[1:]
SHAPES = {
    "responses": TypeAdapter(ResponseCreateParamsStreaming),
    "chat": TypeAdapter(CompletionCreateParamsStreaming),
    "messages": TypeAdapter(MessageCreateParamsStreaming),
}


def known(api: str, body: dict[str, Any]) -> None:
    """Every field is one of theirs, with a value that their types allow."""
    try:
        kept = SHAPES[api].validate_python(body)
    except ValidationError as error:
        sys.exit(f"{api}: {error}\n{json.dumps(body, indent=1)}")
    if unknown := body.keys() - kept.keys():
        sys.exit(f"{api} has no {unknown}")


for line in Path(requests).read_text().splitlines():
    known(*json.loads(line))

theirs = anthropic.Anthropic(api_key="k", base_url=url.removesuffix("/v1"), max_retries=0)
asked = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
with theirs.messages.stream(max_tokens=9, **asked) as stream:
    texts = list(stream.text_stream)
    message = stream.get_final_message()
assert [block.type for block in message.content] == ["thinking", "text"], message
assert message.content[-1].text == "".join(texts)
assert (message.stop_reason, message.usage.cache_read_input_tokens) == ("end_turn", 4)
print(json.dumps("".join(texts)))

tool = {"name": "apply_patch", "input_schema": {"type": "object"}}
with theirs.messages.stream(max_tokens=9, tools=[tool], **asked) as stream:
    message = stream.get_final_message()
print(json.dumps(message.content[-1].input["input"]))

client = openai.OpenAI(api_key="k", base_url=url, max_retries=0)
with client.chat.completions.stream(stream_options={"include_usage": True}, **asked) as stream:
    for _ in stream:
        pass
    answer = stream.get_final_completion()
assert answer.usage.prompt_tokens_details.cached_tokens == 4
print(json.dumps(answer.choices[0].message.content))

with client.responses.stream(model="m", input=[{"type": "message", "role": "user", "content": [
    {"type": "input_text", "text": "a"}]}]) as stream:  # fmt: skip
    for _ in stream:
        pass
    print(json.dumps(stream.get_final_response().output_text))
