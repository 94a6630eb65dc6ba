"""Programs for the interpreter that trains. They may import what is installed there, and `telling` and `said`."""
