"""Drafts of records for findings that no record repairs: offered only once they have been seen to work."""

from patcher.check.drafts.drafting import draft_records
from patcher.check.drafts.folder import Written, write_drafts
from patcher.check.drafts.model import Draft, Ground
from patcher.check.drafts.releases import Releases

__all__ = ["Draft", "Ground", "Releases", "Written", "draft_records", "write_drafts"]
