"""The command line: one module for each command, which parses its options, calls a feature, reports its value and
returns the exit code. `app` has the list of commands, `options` what all share, `ending` turns exceptions into errors
and exit codes.
"""
