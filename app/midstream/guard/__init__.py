"""The security guard: findings on lines that have just been written.

``mending`` makes unfinished Python parse, ``ruff`` asks a warm ``ruff server`` about it,
``injections`` follows queries, ``pack`` has rules for other languages, ``secrets`` looks for
credentials, ``policy`` decides which findings stop the model.  ``scanner`` applies all of them to a
text, ``stream`` to a region that streams in.
"""
