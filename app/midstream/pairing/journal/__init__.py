"""The journal of a session: its entries, and how it is written and replayed."""
