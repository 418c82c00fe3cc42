"""The client side of the wire: endpoints, typed events and one persistent WebSocket per endpoint.

Does not know the engine, the workspace or the screen; anything that speaks OpenAI's Responses API
can be on the other end.
"""
