"""The git checkout that a tree lies in: what it says of files, and the commits that an apply makes."""
