"""Runs in the interpreter that trains: imports and executes, and tells what came of it. Nothing of the tool is used."""
