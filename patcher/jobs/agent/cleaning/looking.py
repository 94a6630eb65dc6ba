"""List what a job has left, and what stands in its way. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.jobs.agent.cleaning import caches, orphans, rays, runs
from patcher.jobs.agent.cleaning.model import Items
from patcher.jobs.agent.cleaning.scene import Scene, scene
from patcher.messages import Refusal, phrase
from patcher.remote.agent import place, variables

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request


def look(request: Request) -> dict[str, Any]:
    """What the job `id` has left: `items`, and `alone`: what is not touched, each with `why`.

    With `caches` also what lies in the tree's own caches, `env` saying where; with `running` also what a job holds that
    is at work. Answers `job` as `jobs.folder.look` does. Raises Refusal where it lives on another machine.
    """
    found = scene(place.root(request), request.args.get("id"))
    items, alone = listed(found, request.args)
    return {"job": found.job, "items": items, "alone": alone}


def listed(found: Scene, args: dict[str, Any]) -> tuple[Items, Items]:
    """The job's things and those that are left alone."""
    job = found.job
    if job["elsewhere"] is not None:
        title = phrase("job {id} runs on {machine}", id=job["id"], machine=job["elsewhere"])
        raise Refusal("elsewhere", title, None, phrase("Clean up there."))
    items, alone = runs.left(found)
    for more, others in (orphans.orphans(found), rays.sessions(found)):
        items += more
        alone += others
    if found.running and not args.get("running"):
        why = phrase("the job is at work")
        alone = [dict(one, why=why) for one in items] + alone
        items = []
    if args.get("caches"):
        more, others = caches.caches(found, dict(_variables(found), **args.get("env", {})))
        items += more
        alone += others
    return items, alone


def _variables(found: Scene) -> dict[str, str]:
    """Where the job was told to keep its caches: noted at its start, and as its processes have it."""
    known = dict(found.job.get("variables", {}))
    for pid in sorted(found.mine):
        known.update(variables.shown(variables.of_process(pid)))
    return known
