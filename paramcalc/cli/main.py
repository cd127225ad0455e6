"""The entry point: commands found by name and imported when they are used.

A first word that is no command is a model, so that ``paramcalc llama3-8b`` needs no subcommand.
Every expected fault leaves as one line on standard error with exit code 2.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "show": "Count one model (the word may be left out).",
    "list": "List and filter the presets.",
    "compare": "Set models side by side, by component.",
    "sweep": "Evaluate a grid of shapes.",
    "explain": "Show each formula in symbols, with numbers, with its integer.",
    "formats": "The weights in every format, in bytes and bits a weight.",
    "fit": "Does it fit these GPUs, by how much, and what would make it fit.",
    "serve": "Time to first token, tokens a second, what bounds them, cost.",
    "train": "Memory, FLOPs, days, energy and money of a training run.",
    "moe": "Load of the experts: slots, drops, padding, imbalance.",
    "hardware": "List accelerators, or show one with the source of each figure.",
    "sheet": "Write models as a workbook of live formulas.",
    "annotate": "Append figures to the rows of your own table.",
    "page": "Write the calculator as one HTML file, or open it here.",
    "audit": "Compare a model with the tensors that files hold.",
    "preset": "Write a config.json as a preset.",
}
DEFAULT = "show"

HELP = """\
Usage: paramcalc MODEL [OVERRIDES] [OUTPUT]
       paramcalc COMMAND [ARGS]

Parameters, FLOPs and memory of a transformer language model, exact.
MODEL is a preset (paramcalc list), a YAML file, a config.json or its folder.

Commands (each has --help):
{commands}

Examples:
  paramcalc llama3-8b
  paramcalc llama3-8b --kv 32 --context 128k
  paramcalc my-model.yaml --json
  paramcalc path/to/config.json
  paramcalc audit llama3-8b model.safetensors.index.json
  paramcalc compare llama3-8b qwen3-8b
  paramcalc explain gpt2
  paramcalc sweep --d 4096 --kv 8,32

Sizes may be typed 8k, 128k, 7B, 1.5M: 1k is 1,024 for tokens, 1,000 otherwise.

Options:
  --version             Print the version.
  --install-completion  Complete commands and presets in this shell.
  --show-completion     Print the completion script.
  --help                Print this page; `paramcalc show --help`: overrides.
"""


class Commands(TyperGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command by its name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(f"paramcalc.cli.{cmd_name}").app)
        command.name = cmd_name
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in front of words that start with a model or an override."""
        own = {name for param in self.get_params(ctx) for name in param.opts}
        if args and args[0] not in COMMANDS and args[0].partition("=")[0] not in own:
            args = [DEFAULT, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page above, which costs a tenth of a rendered one."""
        listed = "\n".join(f"  {name:<9} {text}" for name, text in COMMANDS.items())
        formatter.write(HELP.format(commands=listed))

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete commands and, since a model may come first, presets."""
        from paramcalc.cli.options import complete_models

        found = super().shell_complete(ctx, incomplete)
        item = type(found[0]) if found else None
        if item is None:
            show = self.get_command(ctx, DEFAULT)
            return show.params[0].shell_complete(ctx, incomplete)
        return found + [item(name) for name in complete_models(incomplete)]


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from paramcalc import __version__

        typer.echo(f"paramcalc {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main(argv: list[str]) -> int:
    """Run one command line and return its exit code: 0, 2 for bad input, 130 if interrupted."""
    from paramcalc.errors import ParamcalcError

    _settle_streams()
    click_error = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        result = app(argv, standalone_mode=False, prog_name="paramcalc")
        sys.stdout.flush()
    except ParamcalcError as error:
        return _fault(str(error))
    except click_error as error:  # type: ignore[misc]
        return _fault(_hint(error.format_message(), argv))
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except (BrokenPipeError, SystemExit):  # the reader of a pipe has left: click exits so itself
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return _fault(f"standard output: {(error.strerror or 'cannot be written').lower()}")
    return result if isinstance(result, int) else 0


def _settle_streams() -> None:
    """Letters that an output cannot hold become ?, and a width that is no number is not one."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    for name in ("COLUMNS", "LINES"):
        if not (size := os.environ.get(name, "1")).isascii() or not size.isdecimal():
            del os.environ[name]


def _hint(message: str, argv: list[str]) -> str:
    """Add what to do to click's message."""
    if message.startswith("Got unexpected extra argument") and argv[0] not in COMMANDS:
        from paramcalc.errors import did_you_mean

        near = did_you_mean(argv[0], COMMANDS, most=1)
        return f"{message}{near or '; paramcalc compare A B sets models side by side'}"
    return message


def _drop_output() -> None:
    """Point standard output away, so that leaving does not fail on it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fault(message: str) -> int:
    from paramcalc.errors import printable
    from paramcalc.views.output import say

    plain = printable(" ".join(message.split()))
    short = re.sub(r"\S{81,}", lambda found: f"{found[0][:60]}...", plain)
    say(short)
    return 2
