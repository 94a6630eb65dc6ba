"""`uky-patch watch`: follow a run that is alive, and report when it stalls, with the stacks of its processes."""
