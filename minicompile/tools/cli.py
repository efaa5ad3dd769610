"""The command line: ``minicompile COMMAND ...`` or ``python -m minicompile COMMAND ...``.

Exit codes: 0 all well, 1 a check failed or something could not be compiled, 2 a mistake in the command.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from minicompile import __version__
from minicompile.errors import CompileError, unknown_name
from minicompile.tools import check, compare, demo, doctor, explain, listing, run

Command = Callable[[argparse.Namespace], int]

USER_ERRORS = ("MC001", "MC002", "MC020")

EPILOG = """\
TARGET is a model of the zoo (see `minicompile zoo`), file.py:name (a module, a class without
arguments or a function; example inputs from `inputs` or `example_inputs` in the file, or --inputs),
or an expression: -c "nn.RMSNorm(64)(torch.randn(8, 64))".  Modules are put into eval mode.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Mistakes of the user are told in words, not tracebacks."""
    try:
        given = list(sys.argv[1:] if argv is None else argv)
        arguments = parser().parse_args(given or ["--help"])
        command: Command = arguments.command
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            return command(arguments)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 2 if error.code in USER_ERRORS else 1
    except BrokenPipeError:  # `minicompile ops | head`: the reader left, which is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Parser(argparse.ArgumentParser):
    """argparse, but a wrong command is answered like every other wrong name."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise unknown_name("command", value, list(action.choices))
        super()._check_value(action, value)


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = _Parser(
        prog="minicompile",
        description="A readable reference compiler for PyTorch models.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"minicompile {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, command: Command, help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=help, description=help, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.set_defaults(command=command)
        return made

    _add_model_commands(add)
    add("zoo", listing.zoo_command, "list the example models")
    add("passes", listing.passes_command, "list the passes, in the order of the pipeline")
    ops = add("ops", listing.ops_command, "list the op registry, or the ATen overloads it covers")
    ops.add_argument("--aten", action="store_true", help="coverage by ATen overload")
    add(
        "doctor", doctor.command, "show versions, threads, SIMD width, drawing program, CUDA, cache"
    )
    opt = add("opt", compare.opt_command, "run passes on IR text and print the result")
    opt.add_argument("file", help="a file with the text of a graph; - reads standard input")
    opt.add_argument("-p", "--passes", required=True, help='for example "cse,dce"')
    diff = add("diff", compare.diff_command, "compare two dumps, or two TARGET@STAGE")
    diff.epilog = EPILOG
    diff.add_argument("a", metavar="A", help="a file with IR text, or TARGET@STAGE")
    diff.add_argument("b", metavar="B", help="the same, for comparison")
    diff.add_argument("--out", help="draw the difference into this .svg file")
    return top


def _add_model_commands(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    made = add("demo", demo.command, "the main job on a small GPT: compile, check, time, draw")
    made.add_argument("--out", default="minicompile-report", help="folder for the drawings")
    _add_threads(made)
    made = add("explain", explain.command, "show what every stage did with a model")
    _add_target(made)
    made.add_argument("--stage", help="print this stage's text")
    made.add_argument(
        "--out", help="write every stage (.py, .svg) and an index.html into this folder"
    )
    made = add("run", run.command, "compile and run a model; times and errors beside eager")
    _add_target(made)
    _add_threads(made)
    made = add("check", check.command, "run every stage of models and compare with eager")
    _add_target(made, several=True)


def _add_threads(made: argparse.ArgumentParser) -> None:
    made.add_argument("--threads", type=int, default=1, help="threads while timing (default 1)")


def _add_target(made: argparse.ArgumentParser, several: bool = False) -> None:
    made.epilog = EPILOG
    made.add_argument("target", nargs="*" if several else "?", metavar="TARGET")
    made.add_argument("-c", dest="expression", help='such as "nn.GELU()(torch.randn(8))"')
    made.add_argument("--inputs", help='example inputs, such as "torch.randn(8, 64)"')
    made.add_argument("--backend", default="cpu", help="cpu or interpreter")
    made.add_argument("--mode", default="default", help="default, reduce-overhead or max-autotune")
    made.add_argument("--disable", default="", help="passes to leave out: cse,tile")
