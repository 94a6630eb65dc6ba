"""What a training log is made of: lines and their prefixes, loggers' labels and times, and milestones of a run."""
