"""Jobs on this machine: started so that they outlive the connection, looked at, read, and stopped.

A job is a folder below the tree: `job.json` (what was started), `log`, `times` (how long the log was when), `end.json`
(how it ended), `stop.json` (that it was told to).
"""
