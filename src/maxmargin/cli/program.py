"""The program: its commands, what goes wrong, and the exit code."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import traceback
from collections.abc import Sequence
from functools import partial
from typing import Any

import maxmargin
from maxmargin.cli import bench, completion, convert, cv, demo, info, predict, scale, train
from maxmargin.cli.console import BAD_INPUT, BUG, INTERRUPTED, Console
from maxmargin.cli.libsvm_words import translated

COMMANDS: dict[str, tuple[Any, str]] = {
    "train": (train, "a machine from a file of samples"),
    "predict": (predict, "predictions of a model, and how good they are"),
    "scale": (scale, "features to one range"),
    "cv": (cv, "cross-validation of one setting, or of a grid of them"),
    "info": (info, "what a model file holds"),
    "convert": (convert, "samples or a model in another format"),
    "bench": (bench, "the benchmarks, from a checkout"),
    "demo": (demo, "every machine on generated data"),
    "completion": (completion, "completion for bash, zsh or tcsh"),
}
# LIBSVM's programs by their names: the same commands, models in LIBSVM's format
PROGRAMS = {"svm-train": "train", "svm-predict": "predict", "svm-scale": "scale"}
EXIT_CODES = """exit codes:
  0    done
  1    not converged within the limits; the model is written all the same, with its gap
  2    bad input: options, data or model
  3    a bug: please report it
  130  Ctrl-C; the best model so far is written"""


def parser() -> argparse.ArgumentParser:
    """Of the whole program."""
    top = argparse.ArgumentParser(
        prog="maxmargin", formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        description="Support vector machines from files, with a certificate for every answer.",
        epilog=f"svm-train, svm-predict and svm-scale are LIBSVM's programs: `maxmargin svm-train` takes the place of "
               f"`svm-train`.\n\n{EXIT_CODES}",
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"maxmargin {maxmargin.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        _add(commands, name, module, text, module.add_options)
    for name, ours in PROGRAMS.items():
        module, _ = COMMANDS[ours]
        options = partial(train.add_options, like_libsvm=True) if ours == "train" else module.add_options
        _add(commands, name, module, f"{ours}, as LIBSVM's {name}", options)
    return top


def _add(commands: Any, name: str, module: Any, text: str, options: Any) -> None:
    examples = "\n".join(f"  {line}\n      {what}" for line, what in module.EXAMPLES)
    command = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"examples:\n{examples}", add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    command.add_argument("--help", action="help", help="this text; so does -h")
    if module not in (bench, demo, completion):
        command.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but errors")
        command.add_argument("--json", action="store_true", help="results as one JSON object")
    options(command)
    command.set_defaults(run=module.run, name=name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (of the process, by default); returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["bench"] and words[1:2] not in (["-h"], ["--help"]):
        words.insert(1, "--")  # all that follows is for the benchmarks
    elif words and words[0] in {*COMMANDS, *PROGRAMS}:
        words[1:] = translated(words[1:])
    args = parser().parse_args(words)
    args.line = list(sys.argv[1:] if argv is None else argv)
    try:
        code = int(args.run(args, Console(getattr(args, "quiet", False), getattr(args, "json", False))))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as if ended by SIGPIPE
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        return _failed(args, "not enough memory; --engine linear and --engine budget need the least")
    except OSError as error:
        return _failed(args, f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _failed(args, str(error))
    except Exception:
        traceback.print_exc()
        print("This is a bug of maxmargin's: please report it, with the lines above.", file=sys.stderr)
        return BUG


def _failed(args: argparse.Namespace, trouble: str) -> int:
    print(textwrap.indent(trouble, " " * 4).replace("    ", f"maxmargin {args.name}: error: ", 1), file=sys.stderr)
    return BAD_INPUT
