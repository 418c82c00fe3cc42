"""The package litellm: whole and streamed responses. Arguments: address, key, model."""

import sys

import litellm

URL, KEY, MODEL = sys.argv[1:4]
options = {"model": f"openai/{MODEL}", "api_base": URL, "api_key": KEY, "input": "Say hello."}
whole = litellm.responses(**options)
assert whole.output[0].content[0].text == "Hello.", whole
events = list(litellm.responses(**options, stream=True))
assert "".join(getattr(event, "delta", "") for event in events) == "Hello."
assert events[-1].type == "response.completed", events[-1]
