"""A job that runs, watched: its phases against the clock, and what is looked at where it stands still."""
