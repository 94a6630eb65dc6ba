"""Entry point. `--version` answers before anything is loaded; scripts ask it often."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from patcher import __version__

        sys.stdout.write(f"uky-patch {__version__}\n")
        return
    from patcher.cli.app import run

    sys.exit(run())


if __name__ == "__main__":
    main()
