"""The ladder of checks: each program in the interpreter that trains, in a process group of its own, within a budget.

`programs/` holds what runs there: sources that are sent to that interpreter, and never imported by the agent.
"""
