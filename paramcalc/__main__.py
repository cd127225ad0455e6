"""``python -m paramcalc``."""

from paramcalc.cli.main import run

run()
