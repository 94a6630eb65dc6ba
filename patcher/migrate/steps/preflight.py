"""Is everything there that a migration needs, here and at the other end, and is the place the right one?"""

from __future__ import annotations

from patcher.errors import HostError
from patcher.i18n import listed, phrase
from patcher.migrate.walk import Outcome, Walk
from patcher.profiles.model import Text


def run(walk: Walk) -> Outcome:
    """Open the tree's folder on the host and lock it.

    Raises HostError where the folder lies in another verl tree and nobody says that this is meant.
    """
    place = walk.begin()
    if place.within is not None:
        _confirm_nesting(walk, place.within)
    notes: list[Text] = []
    if walk.before is not None and walk.before.stopped is not None:
        told = {"at": walk.before.at, "step": listed(walk.before.stopped), "why": walk.before.why}
        notes.append(phrase("the last run, of {at}, stopped at {step}: {why}", **told))
    odd = bool(place.nested) or bool(walk.host.unset)
    if walk.host.unset:
        names = ", ".join(walk.host.unset)
        notes.append(phrase("named as secrets and not set here, so the job goes without: {names}", names=names))
    if any(name in walk.host.secrets for name in walk.session.config.hosts.get(walk.host.name, {}).get("env", ())):
        odd = True
        warning = "uky-patch.toml holds secrets of {host} and is sent with the tree: name them in `secrets` instead"
        notes.append(phrase(warning, host=walk.host.name))
    if place.nested:
        folders = ", ".join(place.nested)
        notes.append(phrase("there is another verl tree within {path}: {folders}", path=place.path, folders=folders))
    if inner := walk.session.tree.nested():
        notes.append(phrase("there is another verl tree within this one: {folders}", folders=", ".join(inner)))
    if not place.exists or place.empty:
        detail = phrase("{path}, new", path=place.path)
    elif place.manifest:
        detail = phrase("{path}, migrated to before", path=place.path)
    else:
        detail = phrase("{path}, there already, but not by a migration", path=place.path)
    return Outcome(detail, "warn" if odd else "ok", notes=tuple(notes))


def _confirm_nesting(walk: Walk, outer: str) -> None:
    question = phrase(
        "{path} lies inside another verl tree, {outer}. Put a tree there all the same?",
        path=walk.place.path if walk.place else "",
        outer=outer,
    )
    if not walk.order.yes and not walk.listeners.confirm(question):
        raise HostError(
            phrase("{path} lies inside another verl tree", path=walk.place.path if walk.place else ""),
            cause=phrase("the tree that it lies in is {outer}", outer=outer),
            advice=phrase("Most likely {outer} was meant: --path {outer}. If not, say so with --yes.", outer=outer),
        )
