"""Data sets and models of a host, this machine among them: reports, tiny copies, warm-up."""
