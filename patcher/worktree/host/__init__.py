"""The tree on a host: its folder, its lock, and files put in the place of others."""
