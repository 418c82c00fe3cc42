"""One instruction and its answers: the runner, the answer, edit modes, checks and candidates."""
