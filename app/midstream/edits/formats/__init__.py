"""Edit formats: one streaming parser for each, behind one interface (``base.Parser``)."""
