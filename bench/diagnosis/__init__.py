"""Labelled logs of real and rebuilt runs, and how `diagnose` does on them."""
