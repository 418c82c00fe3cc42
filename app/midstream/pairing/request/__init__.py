"""From an instruction to a request: its context, and how the model is asked."""
