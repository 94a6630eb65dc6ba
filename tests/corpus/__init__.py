"""Labelled logs for `diagnose`, and what made them."""
