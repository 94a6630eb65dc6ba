"""What the stacks of a job's processes say: grouped, the odd one named, each place with what it means."""
