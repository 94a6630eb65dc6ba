"""What runs on the machine that trains: Python 3.8 or later and its standard library alone, nothing to install.

The sources of this room are sent over the connection and run from memory (`patcher.hosts.payload`), on this machine as
on any other. They import nothing of `patcher` but each other.
"""
