"""From an instruction to a request: what goes along, and how the model is asked."""
