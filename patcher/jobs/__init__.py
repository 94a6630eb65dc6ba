"""Training jobs on a host. A job outlives the connection; its log is followed over as many as it takes, and its end is
judged. `run` shows the steps from a script to a verdict.
"""

from patcher.jobs.control import (
    Stopped,
    all_jobs,
    look,
    require_startable,
    running,
    save_working,
    script_of,
    start,
    stop,
    tail,
)
from patcher.jobs.follow_log import JobListener, follow, verdict_now
from patcher.jobs.job import Job, Kind, Usage, Verdict

__all__ = [
    "Job",
    "JobListener",
    "Kind",
    "Stopped",
    "Usage",
    "Verdict",
    "all_jobs",
    "follow",
    "look",
    "require_startable",
    "running",
    "save_working",
    "script_of",
    "start",
    "stop",
    "tail",
    "verdict_now",
]
