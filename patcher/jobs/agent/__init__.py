"""Jobs on this machine: started so that they outlive the connection, looked at, read, stopped and cleaned up after.

A job is a folder below the tree (`patcher.remote.agent.place.JOBS`), named as its id. In it:

- `job.json`: what was started, by whom, on which machine, and the process that it began with
- `log`: what the job writes
- `times`: lines `SECONDS BYTES`, the size of the log over time; its own time of change is the sign of life
- `stop.json`: that somebody told the job to stop
- `end.json`: how it ended
- `traces`: what its processes made outside of the folder (`traces`)
- `runner.py` and other programs: copies, so that a running job does not depend on this version of the tool
- of a job that Slurm starts, `order.json`, `batch.sh`, `slurm.json` and `queue.json` (`queued`, `batch_runner`)
"""
