"""Which file and lines an instruction means."""
