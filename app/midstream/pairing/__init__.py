"""The pairing session: turns, steering, decisions and writes, without a screen."""
