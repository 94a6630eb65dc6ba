"""TOML tables that people write, checked: every mistake of a file is reported at once, with its line."""
