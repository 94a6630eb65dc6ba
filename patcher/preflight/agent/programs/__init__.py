"""Programs for the interpreter that trains. They may import what is installed there, `check_report` and `messages`."""
