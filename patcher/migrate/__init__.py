"""Move the fork to another host: what is sent, what is written there, and edits made there taken back here."""
