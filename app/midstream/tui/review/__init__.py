"""The review screen: one screen, its widgets, its state, and controllers beside it.

An action of ``midstream.actions`` names the controller and method that carry it out; the sentence
that says what it does stands there.
"""
