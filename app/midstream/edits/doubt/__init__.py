"""What speaks against a rewrite in its own text: ``judge.judged`` gathers all of it.

How probable its tokens were is judged where they are chosen (``engine.confidence``), and which
hunks are flagged, ``pairing.turn.doubt`` remembers.
"""
