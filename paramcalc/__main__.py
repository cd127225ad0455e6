"""``python -m paramcalc``, and the ``paramcalc`` script."""

from __future__ import annotations

import gc
import sys


def run() -> None:
    """Run the command line and leave with its exit code; an interrupt is quiet from the start."""
    gc.disable()  # a short life: collecting cycles while modules load buys nothing
    try:
        from paramcalc.cli.main import main

        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
