"""Move the fork to another host: what is sent, what is written there, and how far a migration has come."""
