"""Make the labels: enumerate the uses of every verl release, and execute their probes in every environment."""

from __future__ import annotations

import json

from bench.accuracy.environments import ENVIRONMENTS
from bench.accuracy.labelling import answers
from bench.accuracy.labels import PACKAGES, WORKS_WITH, Witnessed, witnessed, write
from bench.accuracy.uses import uses
from patcher.packages.releases import sources


def make(names: list[str]) -> None:
    """`names` limits the environments that are asked again; no names: all."""
    found = {verl: list(uses(sources("verl", verl), PACKAGES)) for verl in WORKS_WITH}
    package_of = {json.dumps(use.probe): use.symbol.partition(".")[0] for each in found.values() for use in each}
    known = {json.dumps(each.probe): each.answers for each in witnessed()}
    for environment in ENVIRONMENTS:
        wanted = {key for key, package in package_of.items() if package == environment.package}
        asked = not names or environment.name in names
        lacking = wanted if asked else {key for key in wanted if environment.name not in known.get(key, {})}
        for key, answer in answers(environment, lacking).items() if lacking else ():
            known.setdefault(key, {})[environment.name] = answer
    write(found, [Witnessed(json.loads(key), known[key]) for key in sorted(package_of)])
