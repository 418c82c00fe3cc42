"""Which file and lines an instruction refers to."""
