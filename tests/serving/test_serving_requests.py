"""Whatever a peer sends is either understood or refused; nothing else is raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from midstream.serving.requests import (
    CreateRequest,
    RequestError,
    read_create,
    read_frame,
    read_messages,
    read_steer_messages,
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
items = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "reasoning", "function_call_output", "odd"]) | anything,
        "role": st.sampled_from(["user", "assistant", "developer"]) | anything,
        "content": st.text() | anything,
        "output": st.text() | anything,
    },
)
creates = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(CreateRequest.__struct_fields__, anything)
    | {"input": st.text() | st.lists(items | anything, max_size=4)},
)


def refusal(read: Callable[[], object]) -> RequestError | None:
    """How a reading was refused; anything else it raises fails the test."""
    try:
        read()
    except RequestError as refused:
        return refused
    return None


@given(creates)
def test_any_create_is_read_or_refused(fields: dict[str, Any]) -> None:
    refused = refusal(lambda: read_messages(read_create(fields).input))
    if refused is not None:
        assert refused.status == 400
        assert "\n" not in str(refused)
        json.dumps(refused.envelope())
    else:
        messages = read_messages(read_create(fields).input)
        assert all(isinstance(message.text, str) for message in messages)


@given(st.text() | st.lists(items, max_size=3))
def test_any_steer_is_read_or_refused(value: Any) -> None:
    refused = refusal(lambda: read_steer_messages(value))
    if refused is not None:
        assert refused.param
    else:
        assert {message.role for message in read_steer_messages(value)} == {"user"}


@given(st.binary(max_size=40) | st.text(max_size=40) | anything.map(json.dumps))
def test_any_frame_is_an_object_or_refused(frame: bytes | str) -> None:
    refused = refusal(lambda: read_frame(frame))
    if refused is not None:
        assert refused.code == "invalid_json"
    else:
        assert read_frame(frame) == json.loads(frame)
