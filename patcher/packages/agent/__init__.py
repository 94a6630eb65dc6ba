"""What is installed on a machine, read off its files. Part of the agent: standard library of Python 3.8 alone."""
