"""Plain mode: a pairing session line by line, for screen readers, pipes and dumb terminals.

It moves no cursor and imports no Textual.
"""
