"""Published models: what a hub offers, a short catalogue of coder models, downloading one.

A hub is asked only by what the user does: nothing here runs on its own.
"""
