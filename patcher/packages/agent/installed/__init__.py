"""What is installed under an interpreter, read off its files: the same reading on this machine and on any host."""
