"""The agent's half of the connection, and the survey of its machine: standard library of Python 3.8 alone."""
