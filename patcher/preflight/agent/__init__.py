"""The checks of the preflight: programs in the interpreter that trains, each in its own process group, within a budget.

`programs/` holds what runs there: sources that are sent to that interpreter, and never imported by the agent.
"""
