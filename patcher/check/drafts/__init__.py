"""Drafts of records for findings that no record repairs: offered only once they have been seen to work."""

from patcher.check.drafts.drafting import draft_records
from patcher.check.drafts.inputs import Draft, DraftInputs, Releases
from patcher.check.drafts.writing import Written, write_drafts

__all__ = ["Draft", "DraftInputs", "Releases", "Written", "draft_records", "write_drafts"]
