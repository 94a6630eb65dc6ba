"""The processes of a job on this machine: which ones they are, what they use, and their stacks."""
