"""Published models: the files that a hub offers, a short catalogue of coder models, downloads.

A hub is asked only by what the user does: nothing here runs on its own.
"""
