"""The model server: OpenAI's Responses API over WebSocket and HTTP, and the child process with it.

Schedules generations and keeps conversations; how text is generated is the engine's business.

What goes beyond the published protocol, none of it unasked except for strings in ``metadata``:

- ``response.interrupt`` (as Codex uses it), also with the mode ``keep_partial_items``: the text
  sent so far stays in the conversation.
- ``response.steer`` takes effect at the end of the line that is being written.
- ``stream_options.midstream_tokens``: text events say in ``tokens`` how many model tokens they
  hold.
- ``metadata`` of a response has the model's facts as ``midstream.<fact>``, and at its end what it
  cost: ``midstream.prefill_ms``, ``decode_ms``, ``forwards``, ``drafted_tokens`` and
  ``accepted_tokens``; of a calibrated model ``midstream.confidence`` (the probability that the
  complete answer is right); while it waits for the engine, ``midstream.queue_ahead``; while a long
  prompt is read, ``midstream.read_tokens`` and ``prompt_tokens``.
- ``/v1/models`` has the facts as ``metadata``.
"""
