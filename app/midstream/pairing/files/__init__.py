"""The open files of a session: proposals, decisions, writes to disk, and commits."""
