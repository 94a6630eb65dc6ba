"""Every node of a Ray cluster: one task a node, pinned, that carries the tool along."""
