"""Interpret the stacks of a job's processes: group them by place, find the odd one, and say what each place means."""
