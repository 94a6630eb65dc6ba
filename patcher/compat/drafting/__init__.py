"""Drafts of records for findings that no record repairs: offered only once they have been seen to work."""

from patcher.compat.drafting.drafting import draft_records
from patcher.compat.drafting.folder import Written, write_drafts
from patcher.compat.drafting.model import Draft, Ground
from patcher.compat.drafting.releases import Releases

__all__ = ["Draft", "Ground", "Releases", "Written", "draft_records", "write_drafts"]
