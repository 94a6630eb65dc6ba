"""The processes of a job on this machine: which they are, what they do, and where each of them stands."""
