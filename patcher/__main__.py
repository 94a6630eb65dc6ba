"""Entry point. `--version` answers before anything is loaded; scripts ask it often."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from patcher import __version__

        sys.stdout.write(f"uky-patch {__version__}\n")
        return
    import gc

    from patcher.cli.app import run

    gc.disable()  # a command lives for a second; collecting among its syntax trees takes a fifth of that
    sys.exit(run())


if __name__ == "__main__":
    main()
