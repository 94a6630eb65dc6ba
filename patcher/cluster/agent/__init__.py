"""What runs on a node of a Ray cluster; standard library of Python 3.8."""
