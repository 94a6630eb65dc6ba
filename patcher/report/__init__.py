"""What people and programs are shown of a feature's result: text, JSON, Markdown, HTML pages and SARIF.

A report is a function from values to parts of a document (`patcher.terminal.document`): it prints nothing and changes
nothing. JSON is always in English and is the contract of docs/commands.md; text is in the reader's language. Exit codes
that follow from a result alone are here as well: `apply_exit_code`, `verified_exit_code`, `exit_code` of jobs and
watch.
"""
