"""TOML tables that people write, checked: every mistake of a file is told at once, with its line."""
