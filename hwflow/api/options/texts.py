"""Parse the texts of options, with a finding for each invalid one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hwflow.display import show
from hwflow.errors import Finding, UsageError

if TYPE_CHECKING:
    from hwflow.frontend.input_types import InputType
    from hwflow.frontend.states.ties import States
    from hwflow.passes.hold_layers import Holding


def number(option: str, text: str | None, example: str) -> float | None:
    """Parse the number of an option (None if not given). Raises :class:`UsageError`."""
    try:
        return None if text is None else float(text)
    except ValueError:
        message = f"must be a number, not {show(text)}"
        raise UsageError.of("number-option", f"option {option}", message, f"for example {option} {example}") from None


def whole_number(option: str, text: str | None, example: str) -> int | None:
    """Parse the whole number of an option (None if not given). Raises :class:`UsageError`."""
    try:
        return None if text is None else int(text)
    except ValueError:
        message = f"must be a whole number, not {show(text)}"
        raise UsageError.of("number-option", f"option {option}", message, f"for example {option} {example}") from None


def listed(texts: Sequence[str]) -> list[str]:
    """Return the values of an option that is a list between commas, and may be given several times."""
    return [part.strip() for text in texts for part in text.split(",")]


def seeds(text: str | None) -> int:
    """Parse --place-route-seeds; 0 if not given. Raises :class:`UsageError`."""
    from hwflow.toolchain.build import MOST_SEEDS

    number = whole_number("--place-route-seeds", text, "8")
    if number is None:
        return 0
    if not 1 <= number <= MOST_SEEDS:
        message = f"must be from 1 to {MOST_SEEDS}, not {number}"
        raise UsageError.of("number-option", "option --place-route-seeds", message, "for example --place-route-seeds 8")
    return number


def resources(text: str | None) -> dict[str, str] | None:
    """Split --budget into names and values, unchecked. Raises :class:`UsageError`."""
    if text is None:
        return None
    from hwflow.api.budget import malformed

    result: dict[str, str] = {}
    findings = []
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name and sign and value):
            findings.append(malformed(f"must be NAME=VALUE,..., not {show(text)}"))
        elif name in result:
            findings.append(malformed(f"must name each resource once, not {show(name)} twice"))
        else:
            result[name] = value
    if findings:
        raise UsageError(dict.fromkeys(findings))
    return result


def input_types(options: Sequence[str]) -> dict[str, InputType]:
    """Parse --input-type. Raises :class:`UsageError` with a finding for each malformed one."""
    if not options:
        return {}
    from hwflow.frontend.input_types import malformed, parsed

    texts: dict[str, str] = {}
    findings = []
    for option in options:
        name, _, text = option.rpartition("=")  # a name may hold the sign
        if not name:
            findings.append(malformed(f"must be NAME=TYPE[,SCALE[,ZERO_POINT]], not {show(option)}"))
        elif name in texts:
            findings.append(malformed(f"must name each input once, not {show(name)} twice"))
        else:
            texts[name] = text
    result: dict[str, InputType] = {}
    try:
        result = parsed(texts)
    except UsageError as error:
        findings += error.findings
    if findings:
        raise UsageError(findings)
    return result


def states(ties: Sequence[str], channels: str | None) -> States:
    """Parse --state and --channels. Raises :class:`UsageError`."""
    from hwflow.frontend.states.ties import States, require_channels

    count = whole_number("--channels", channels, "16")
    if count is not None:
        require_channels(count)
    return States(tuple(ties), count)


def interleave(text: str) -> int | str:
    """Return --interleave as a number if it is one; :func:`hwflow.api.request.requested` checks it."""
    return int(text) if text.isdecimal() and len(text) < 10 else text


def holding(patchable: str | None, loadable: str | None) -> Holding | None:
    """Return the layers of --patchable or --loadable: all, or those that it names between commas; None without both, or
    for --loadable none.
    Raises :class:`UsageError` where both are given, or no name is."""
    from hwflow.passes.hold_layers import Holding

    if loadable == "none":
        loadable = None
    if patchable is not None and loadable is not None:
        raise UsageError.of(
            "held-layers", "option --patchable", "must be given without --loadable, not with it",
            "leave it out: what is loaded need not be patched",
        )
    text = patchable if loadable is None else loadable
    if text is None:
        return None
    names = frozenset(name for name in text.split(",") if name)
    if not names:
        option = "--patchable" if loadable is None else "--loadable"
        raise UsageError.of("held-layers", f"option {option}", "must name layers, not none", "name some, or 'all'")
    return Holding(None if text == "all" else names, loadable=loadable is not None)


def dimensions(options: Sequence[str]) -> dict[str, int]:
    """Parse --dim. Raises :class:`UsageError`."""
    result = {}
    for option in options:
        name, _, value = option.rpartition("=")  # a name may hold the sign
        if not name or not value.isdecimal() or int(value) < 1:
            raise UsageError.of(
                "dimension-option",
                "option --dim",
                f"must be NAME=VALUE with VALUE at least 1, not {show(option)}",
                "for example --dim N=1",
            )
        result[name] = int(value)
    return result


def constants(options: Sequence[str]) -> dict[str, str]:
    """Split --const into names and values, which the model decides on. Raises :class:`UsageError`."""
    result: dict[str, str] = {}
    findings = []
    for option in options:
        name, sign, value = option.partition("=")
        if not (name and sign and value):
            findings.append(_constant(f"must be NAME=VALUE, not {show(option)}"))
        elif name in result:
            findings.append(_constant(f"must name each input once, not {show(name)} twice"))
        else:
            result[name] = value
    if findings:
        raise UsageError(findings)
    return result


def _constant(message: str) -> Finding:
    return Finding("const-option", "option --const", message, "for example --const sr=16000")
