"""What the commands do: read the tree, plan, write, and tell what came of it."""
