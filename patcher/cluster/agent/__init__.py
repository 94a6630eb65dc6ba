"""What runs on a node of a Ray cluster. It uses the standard library of Python 3.8 alone."""
