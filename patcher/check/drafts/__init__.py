"""Drafts of records for findings that no record repairs: offered only once they have been seen to work."""
