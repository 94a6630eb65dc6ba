"""Data sets and models of a host: reports, small copies, the newest snapshot, warming the page cache."""
