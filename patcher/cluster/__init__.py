"""Verify, apply and watch on every node of a Ray cluster, by tasks of Ray; nothing is installed there."""
