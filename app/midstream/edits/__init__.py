r'''The edit core: from a model's stream to hunks, and from decisions to text.

Pure Python without I/O, clock or terminal, so that it can be tested and used elsewhere.  The parts,
in the order in which text passes through them:

- ``formats``, ``parsing``, ``sniffing``, ``events``: what models write, read as it streams;
- ``documents``: text files as lines that keep their bytes;
- ``aligner``, ``segment``, ``rows``: the live diff of a rewrite, which never revises a decision;
- ``hunks``, ``proposal``, ``rebase``: decisions, the texts that follow from them, and moving with a
  file that changes;
- ``matching``, ``indent``, ``locate``: finding the lines that an edit quotes;
- ``doubt``: what speaks against a rewrite in its text;
- ``live``, ``writing``: a reply streamed into proposals; ``apply``, ``outcome``: a whole reply
  applied to files;
- ``request``: the edit request as text.

A rewrite streams in; its first hunk is accepted before the rest has arrived:

>>> from midstream.edits.documents import SourceText
>>> from midstream.edits.hunk_store import HunkStore
>>> from midstream.edits.proposal import FileProposal
>>> base = SourceText.from_bytes(b"import os\r\n\r\ndef area(r):\r\n    return 3 * r\r\n")
>>> hunks = HunkStore()
>>> proposal = FileProposal("area.py", base, hunks)
>>> segment = proposal.begin(0, 4)
>>> proposal.feed("import os\nimport math\n\ndef area(r):\n    retu")
>>> [(row.kind.value, row.text) for row in [*segment.settled, *segment.tail()]]
... # doctest: +NORMALIZE_WHITESPACE
[('context', 'import os'), ('added', 'import math'), ('context', ''),
 ('context', 'def area(r):'), ('writing', '    retu')]
>>> hunks.undecided()
[Hunk(1, 'area.py', 1-1, -0 +1, settled)]
>>> hunks.accept(1)
>>> proposal.composed().to_bytes()
b'import os\r\nimport math\r\n\r\ndef area(r):\r\n    return 3 * r\r\n'

The rest arrives, and is turned down:

>>> proposal.feed("rn math.pi * r ** 2\n")
>>> proposal.finish()
>>> hunks.reject(2, "keep it rough")
>>> proposal.composed().lines[-1]
'    return 3 * r'

A whole reply, applied to files as they are:

>>> from midstream.edits.apply import apply_reply
>>> reply = """I round it:
...
... area.py
... <<<<<<< SEARCH
... return 3 * r
... =======
... return round(3 * r)
... >>>>>>> REPLACE
... """
>>> result = apply_reply(reply, {"area.py": base.to_bytes()}.get)
>>> result.ok, result.format, result.hunks[0].level.name
(True, 'search-replace', 'INDENTATION')
>>> result.changes["area.py"].splitlines()[-1]
b'    return round(3 * r)'
'''
