"""A fork's own edits, made by hand, into records."""
