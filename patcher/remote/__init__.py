"""Machines that train: what is known of one, how it is reached, and how it is talked to."""
