"""The security watchdog: findings on lines that have just been written.

`prefix` makes an unfinished Python file parseable, `ruff` asks a warm ``ruff server`` what it
thinks of it, `secrets` looks for credentials, `policy` decides which findings stop the model,
and `scanner` puts them together: new findings only, compared with the text the model started
from.
"""
