"""``python -m paramcalc``, and the ``paramcalc`` script."""

from __future__ import annotations

import gc
import os
import sys


def run() -> None:
    """Run the command line and leave with its exit code; an interrupt is quiet from the start."""
    gc.disable()  # a short life: collecting cycles while modules load buys nothing
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - stands in for a closed stream
    if sys.stdout is None:
        sys.stderr.write("paramcalc: standard output: closed; open it or send it to a file\n")
        sys.exit(2)
    try:
        from paramcalc.cli.main import main

        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
