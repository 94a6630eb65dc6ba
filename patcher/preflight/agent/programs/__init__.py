"""Programs for the interpreter that trains. They may import what is installed there, `check_report` and `messages`.

A module is run as `__main__`, and of its functions `check_NAME` the one that a program names: `run_programs.MODULES`.
"""
