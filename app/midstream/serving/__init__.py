"""The model server: OpenAI's Responses API over WebSocket and HTTP, and the child process with it.

Schedules generations and keeps conversations; how text is generated is the engine's business.
"""
