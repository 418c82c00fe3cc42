"""Pure code intelligence: languages, lexing, syntax trees, imports and outlines of source text."""
