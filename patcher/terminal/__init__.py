"""Standard output and standard error: what is printed, how wide, in which colours, and without secrets."""
