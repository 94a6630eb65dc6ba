"""`check` on clones of public forks of verl: what it reports, and how much of that is right by hand-made labels."""
