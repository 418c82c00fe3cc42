"""Screens over the review screen: pages, pickers, the hunk editor, help."""
