"""The linear mode: a pairing session line by line, for screen readers, pipes and dumb terminals.

It shows and does nothing that a session does not offer, moves no cursor, and imports no screen.
"""
