"""`python -m tests.corpus.making.rebuilt`: write all rebuilt logs and their labels anew."""

import importlib
import pkgutil

from tests.corpus.making.rebuilt import topics
from tests.corpus.making.rebuilt.keeping import LOGS, keep

for module in pkgutil.iter_modules(topics.__path__):
    importlib.import_module(f"{topics.__name__}.{module.name}")
for each in LOGS.values():
    keep(each)
print(len(LOGS), "logs")
