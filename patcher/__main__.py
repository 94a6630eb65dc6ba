"""Entry point. Whatever happens from here on ends in an exit code of the contract, also while modules are imported.

`--version` answers before anything is loaded; scripts ask it often.
"""

from patcher import interrupt

interrupt.end_at_once()  # Before all else: the imports below take a tenth of a second.

import os  # noqa: E402
import sys  # noqa: E402


def main() -> None:
    """Run the command of `sys.argv` and end the process with its exit code."""
    import atexit

    codes: list[int] = []
    atexit.register(_leave, codes)  # registered first, so that it comes after all others
    codes.append(_run())
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


def _run() -> int:
    try:
        _import_nothing_from_here()
        from patcher.terminal import output

        output.secure()
        if sys.argv[1:] == ["--version"]:
            from patcher import __version__

            sys.stdout.write(f"uky-patch {__version__}\n")
            sys.stdout.flush()
            return 0
        import gc
        import warnings

        gc.disable()  # a command lives for a second; collecting among its syntax trees takes a fifth of that
        warnings.resetwarnings()  # PYTHONWARNINGS=error, set for a test suite, would turn each into a bug.
        warnings.simplefilter("ignore")
        from patcher.cli import early

        early.log_in(sys.argv[1:])
        from patcher.cli import ending
        from patcher.cli.app import run

        ending.watch()
        return run()
    except BaseException as error:
        from patcher.cli import ending

        return ending.unexpected(error)


def _leave(codes: list[int]) -> None:
    """End the process at once: taking the syntax trees apart takes a tenth of the time that a check takes."""
    if codes:
        import os

        from patcher.terminal import output

        ending = sys.modules.get("patcher.cli.ending")
        code = 70 if ending is not None and ending.met and codes[0] != interrupt.CODE else codes[0]
        os._exit(output.finish(code))


if __name__ == "__main__":
    main()
