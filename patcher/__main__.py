"""Entry point. `--version` answers before anything is loaded; scripts ask it often."""

from __future__ import annotations

import os
import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from patcher import __version__

        sys.stdout.write(f"uky-patch {__version__}\n")
        return
    _import_nothing_from_here()
    import atexit
    import gc

    from patcher.cli.app import run

    gc.disable()  # a command lives for a second; collecting among its syntax trees takes a fifth of that
    codes: list[int] = []
    atexit.register(_leave, codes)  # registered first, so that it comes after all others
    codes.append(run())
    sys.exit(codes[0])


def _import_nothing_from_here() -> None:
    """Take the folder where one stands out of Python's search: it may be a tree that holds a `click.py`.

    It is there with `python -m patcher`, and with an empty part in PYTHONPATH (`PYTHONPATH=/some/folder:`).
    """
    try:
        here = os.path.realpath(os.curdir)
    except OSError:  # It is gone, and holds nothing.
        return
    own = os.path.realpath(f"{sys.modules['patcher'].__path__[0]}/..")
    if here != own:
        sys.path[:] = [place for place in sys.path if place and os.path.realpath(place) != here]


def _leave(codes: list[int]) -> None:
    """End the process at once: taking the syntax trees apart takes a tenth of the time that a check takes."""
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[0])


if __name__ == "__main__":
    main()
