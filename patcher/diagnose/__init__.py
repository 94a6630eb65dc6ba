"""`uky-patch diagnose`: read the log of a training run, and name the root cause of its failure."""
