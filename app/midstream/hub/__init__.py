"""Published models: the files that a hub offers, a short catalogue of coder models, downloads.

A hub is only asked at the user's command: nothing here runs on its own.
"""
