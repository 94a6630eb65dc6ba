"""What one call of the command line works on: tree, settings, records, what is installed, hosts."""
