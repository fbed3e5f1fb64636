"""Parse arguments; errors are findings with a suggestion."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from hwflow.display import show
from hwflow.errors import UsageError
from hwflow.suggestion import did_you_mean


class Parser(argparse.ArgumentParser):
    """Reports errors as findings instead of argparse's usage text."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._given: Sequence[str] = ()
        self._meant = ""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but let each parser report its own unknown arguments: it knows the alternatives."""
        self._given = () if args is None else tuple(args)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a value with choices, which a command is, too."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            self._meant = did_you_mean(str(value), map(str, action.choices or ()))
            raise

    def error(self, message: str) -> NoReturn:
        """Raise :class:`UsageError` instead of printing and exiting."""
        meant = self._meant or "".join(
            f"in place of {show(option)} {did_you_mean(option, self._option_string_actions)}"
            for option in self._unknown_options() if did_you_mean(option, self._option_string_actions)
        )
        raise UsageError.of("command-line", self.prog, message, f"{meant}see '{self.prog} --help'")

    def _unknown_options(self) -> list[str]:
        """Return the given options that are neither options of this parser nor prefixes of one."""
        given = [argument.partition("=")[0] for argument in self._given if argument.startswith("--")]
        known = tuple(self._option_string_actions)
        return [option for option in given if not any(name.startswith(option) for name in known)]


@dataclass(frozen=True)
class Wanted:
    """Where a refusal goes besides stderr: to stdout as JSON, and to a JUnit file (None: none)."""

    json: bool
    junit: str | None


def wanted(arguments: Sequence[str]) -> Wanted:
    """Read this from the command line, even if the rest of it is invalid."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--format", nargs="?")
    parser.add_argument("--junit", nargs="?")
    try:
        parsed, _ = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:
        return Wanted(False, None)
    return Wanted(parsed.format == "json", parsed.junit)
