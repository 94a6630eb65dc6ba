"""Write the host's own files from the templates: git_ignore.py and the run scripts."""

from __future__ import annotations

from patcher.i18n import Phrase, Phrases, phrase
from patcher.migrate.walk import Outcome, Walk, found
from patcher.profiles import render_all
from patcher.profiles.model import Put, Text
from patcher.profiles.putting import put

_SAID = {
    "written": phrase("written"),
    "updated": phrase("updated"),
    "unchanged": phrase("unchanged"),
    "kept": phrase("edited there, kept"),
    "foreign": phrase("the host's own, kept"),
}


def run(walk: Walk) -> Outcome:
    """Render for the host and put what nobody there has edited. A file that stays though ours differs is a note."""
    if not walk.order.dry:
        walk.received()
    files = render_all(walk.host, found(walk.survey), _versions(walk), walk.session.tree.root)
    walk.put = put(walk.connection, files, dry=walk.order.dry)
    notes: list[Text] = [note for file in files for note in file.notes]
    stay = [item for item in walk.put if item.how in ("kept", "foreign")]
    if stay:
        command = f"uky-patch render {stay[0].path} --host {walk.host.name} --diff"
        notes.append(phrase("what differs is shown by: {command}", command=command))
    return Outcome(_listed(walk.put), notes=tuple(notes))


def _versions(walk: Walk) -> dict[str, str]:
    if walk.cargo is not None:
        return {name: item.version for name, item in walk.cargo.environment.packages.items()}
    from patcher.remote.environment import environment_of

    environment = environment_of(found(walk.survey), walk.session.tree.root)
    return {name: item.version for name, item in environment.packages.items()}


def _listed(files: tuple[Put, ...]) -> Phrases:
    parts: list[Phrase] = [phrase("{path} {how}", path=file.path, how=_SAID[file.how]) for file in files]
    return Phrases(tuple(parts), ", ")
