"""The command `completion`: a shell script that completes verbs, options, their values and file names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from hwflow.cli.terminal import print_json, print_script

SHELLS = ("bash", "zsh", "fish")


def run_completion(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Print the shell's script for a parser."""
    script = completion(parser, arguments.shell)
    if arguments.format == "json":
        print_json({"shell": arguments.shell, "script": script})
    else:
        print_script(script)
    return 0


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for one of :data:`SHELLS`. Changes ``parser``, which is of no other use then."""
    import shtab

    from hwflow.api.request import UNTIL
    from hwflow.boards import all_boards

    # What argparse does not check, since the commands collect more complaints before they give up.
    choices = {"board": [board.name for board in all_boards()], "until": list(UNTIL)}
    for action in _actions(parser):
        if action.dest in choices and action.choices is None:
            action.choices = choices[action.dest]
        elif action.dest == "trust":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # where shtab looks for it
        elif action.dest in ("model", "models", "target", "input", "calibration", "output", "wave", "junit"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # likewise
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
