"""One archive for a bug report: what is collected, made harmless, announced, and written all or nothing."""
