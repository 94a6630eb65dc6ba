"""Training jobs on a host: they outlive the connection, their log is read from a byte on, and their end is judged."""

from patcher.jobs.following import follow, tell, verdict_now
from patcher.jobs.keeping import save_working
from patcher.jobs.model import Job, Kind, Usage, Verdict
from patcher.jobs.starting import all_jobs, look, running, script_of, start, tail
from patcher.jobs.stopping import Stopped, stop

__all__ = [
    "Job",
    "Kind",
    "Stopped",
    "Usage",
    "Verdict",
    "all_jobs",
    "follow",
    "look",
    "running",
    "save_working",
    "script_of",
    "start",
    "stop",
    "tail",
    "tell",
    "verdict_now",
]
