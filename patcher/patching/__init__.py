"""Records on a tree: status, apply, revert, verify. Everything that writes goes through `patcher.tree`."""
