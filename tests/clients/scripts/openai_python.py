"""The openai package: what it can do with a server, in one go. Arguments: address, key, model."""

import asyncio
import sys
import time

from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI

URL, KEY, MODEL = sys.argv[1:4]
REGION = """<instruction>
rename `total` to `amount`
</instruction>
<region path="sums.py" language="python">
def f(values):
    total = sum(values)
    return total
</region>
"""
RENAMED = "def f(values):\n    amount = sum(values)\n    return amount\n"
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object"}}


def refused(sentence, **fields):
    said = ""
    try:
        client.responses.create(model=MODEL, input=REGION, **fields)
    except BadRequestError as error:
        said = str(error)
    assert sentence in said, said or f"{fields} was not refused"


client = OpenAI(base_url=URL, api_key=KEY, max_retries=0)
assert MODEL in [model.id for model in client.models.list()]

made = client.responses.create(model=MODEL, input=REGION)
assert made.output_text == RENAMED, made.output_text
assert made.created_at == int(made.created_at)
text = ""
with client.responses.stream(model=MODEL, input=REGION) as stream:
    for event in stream:
        text += event.delta if event.type == "response.output_text.delta" else ""
assert text == RENAMED

code = RENAMED.replace("amount", "total")
natural = f"Rename `total` to `amount`.\n\n```python\n{code}```"
assert client.responses.create(model=MODEL, input=natural).output_text == RENAMED

then = client.responses.create(
    model=MODEL, input="rename `amount` to `rate`", previous_response_id=made.id
)
assert then.output_text == RENAMED.replace("amount", "rate"), then.output_text

forced = client.responses.create(
    model=MODEL, input=REGION, tools=[PATCH], tool_choice={"type": "custom", "name": "apply_patch"}
)
assert forced.output[0].type == "custom_tool_call"
patch = forced.output[0].input
assert patch.startswith("*** Begin Patch\n*** Update File: sums.py\n@@\n def f(values):\n-"), patch
refused("cannot call shell", tools=[SHELL], tool_choice={"type": "function", "name": "shell"})
refused("conversation is not supported", conversation="conv_1")
refused("truncation 'auto' is not supported", truncation="auto")

assert client.responses.retrieve(made.id) == made
assert client.responses.input_items.list(made.id).data[0].content[0].text == REGION
client.responses.delete(made.id)
try:
    client.responses.retrieve(made.id)
except NotFoundError:
    pass
else:
    raise AssertionError("it is still there")

background = client.responses.create(model=MODEL, input=REGION, background=True)
while background.status in ("queued", "in_progress"):
    time.sleep(0.05)
    background = client.responses.retrieve(background.id)
assert background.output_text == RENAMED
assert client.responses.cancel(background.id).status == "completed"


async def over_a_socket():
    async with (
        AsyncOpenAI(base_url=URL, api_key=KEY) as sdk,
        sdk.responses.connect() as connection,
    ):
        await connection.response.create(model=MODEL, input=REGION)
        async for event in connection:
            if event.type == "response.completed":
                return event.response.output_text
    return ""


assert asyncio.run(over_a_socket()) == RENAMED
