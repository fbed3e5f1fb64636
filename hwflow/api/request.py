"""What a design is asked to be: the options of a compilation, checked once, together and before a model is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from hwflow.api.budget import Amounts, amounts, beyond_part
from hwflow.boards import Board, UnknownBoard, all_boards, find_board
from hwflow.codegen.board.carriers import OWN, LinkOptions, carrier_for, carrier_name
from hwflow.codegen.board.clock_plan import ClockPlan
from hwflow.codegen.clock import check_positive, clock_for
from hwflow.codegen.emitted.packaging import OWN_NAMES, Packaging
from hwflow.cores.verilog_names import identifier
from hwflow.display import show
from hwflow.errors import Finding, UsageError
from hwflow.frontend.frames.interleaved import OPTION
from hwflow.passes.hold_layers import Holding
from hwflow.passes.pipeline import FORMS, UNROLLED
from hwflow.suggestion import did_you_mean

LINK = "link"  # a rate: what the board's link carries
LONGEST_NAME = 60  # characters of a prefix, before names of up to 100
AUTO = "auto"
LOOPS = (AUTO, *FORMS)  # what becomes of loops
NONE, ALL = "none", "all"
MEMORIES = (AUTO, NONE, ALL)  # whose weights lie in memory outside: of as few layers as must be, of none, of all
MOST_INTERLEAVED = 256
TOO_FAST = "reachable-rate"  # the rule of a refusal of a rate that slower designs would not have got
UNTIL = ("verilog", "netlist", "bitstream")

Rate = float | Literal["link"] | None
Asked = Mapping[str, int | float | str]

_MOST_FPS = 1e18  # beyond any clock; a fraction can be made of it


class Gathered:
    """Findings of independent checks, to be raised together."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    @contextmanager
    def check(self) -> Iterator[None]:
        """Keep the findings of a :class:`UsageError` raised in the body."""
        try:
            yield
        except UsageError as error:
            self.findings += error.findings

    def require_none(self) -> None:
        """Raise :class:`UsageError` with all findings, if any."""
        if self.findings:
            raise UsageError(self.findings)


@dataclass(frozen=True)
class Request:
    """A board, the design's target clock on it, what the design must reach and what it may take.

    ``clock_asked``: ``clock`` is not just the board's own. ``fps``: the least frames per second; None: as many as fit;
    :data:`LINK`: as many as the board's link carries, which only the model's frames say, or where fewer fit as many as
    fit.
    ``budget``: limits of resources; where there is none the default's (:func:`hwflow.api.budget.budgets_for`).
    ``keep_defaults``: to which it keeps beside limits that are given, even if nothing fits.
    ``what_if``: allow more than the board's part has, for Verilog only. ``loops``: what becomes of loops
    (:mod:`hwflow.api.forms.loop_forms`). ``interleave``: frames of the model that are one of the design
    (:mod:`hwflow.frontend.frames.interleaved`); None: as many as pay. ``memory``: whose weights lie in the board's
    memory (:mod:`hwflow.schedule.weights_outside`). ``link``: what its link is to be. ``packaging``: how its modules
    and files are called. ``holding``: layers whose weights a patched bitstream may replace, or a load; None: those
    whose weights ONNX lets override, unless all are ``fixed``.
    """

    board: Board
    clock: ClockPlan
    clock_asked: bool = False
    fps: Rate = None
    budget: Amounts = field(default_factory=dict)
    keep_defaults: bool = False
    what_if: bool = False
    link: LinkOptions = OWN
    loops: str = AUTO
    interleave: int | None = 1
    packaging: Packaging = OWN_NAMES
    memory: str = AUTO
    holding: Holding | None = None
    fixed: bool = False

    @property
    def may_load(self) -> bool:
        """Tell whether layers may be loadable without being asked for."""
        plain = self.memory == AUTO and self.loops in (AUTO, UNROLLED) and not self.packaging.inline_weights
        return plain and not self.fixed and self.board.zynq is None

    @property
    def carrier(self) -> str:
        """The name of the link's carrier."""
        return carrier_name(self.board, self.link)

    @property
    def interval(self) -> int | None:
        """Cycles per frame of the design at the most; None: as few as fit, or only the model's frames say."""
        if self.fps is None or isinstance(self.fps, str):
            return None
        return max(1, int(self.clock.frequency_hz * (self.interleave or 1) / Fraction(min(self.fps, _MOST_FPS))))

    @property
    def asks_speed(self) -> bool:
        """Tell whether a clock or a rate was asked for."""
        return self.clock_asked or self.asks_rate

    @property
    def asks_rate(self) -> bool:
        """Tell whether a rate was asked for."""
        return self.fps is not None


def board_named(name: str) -> Board:
    """Return a board by name. Raises :class:`UsageError` that lists all boards."""
    try:
        return find_board(name)
    except UnknownBoard as unknown:
        known = ", ".join(unknown.known)
        raise UsageError.of(
            "known-board", "option --board", f"board must be one of {known}, not {show(name)}",
            f"{did_you_mean(name, unknown.known)}see 'hwflow boards'",
        ) from None


def check_until(until: str | None, board: Board | None = None, steps: Sequence[str] = UNTIL) -> None:
    """Raise :class:`UsageError` unless ``until`` is one of the ``steps`` and ``board``'s toolchain has it (None: as far
    as the installed tools go)."""
    if until is not None and until not in steps:
        raise UsageError.of(
            "known-step", "option --until", f"must be one of {', '.join(steps)}, not {show(until)}",
            f"{did_you_mean(until, steps)}choose one",
        )
    if until == "netlist" and board is not None and board.tools.vendor:
        raise UsageError.of(
            "known-step", "option --until",
            f"must be verilog or bitstream on {board.name}, not 'netlist': {board.tools.title} keeps its netlists",
            "choose one, or leave the option out",
        )


def check_rate(fps: float | str | None) -> None:
    """Raise :class:`UsageError` unless ``fps`` is a rate: frames per second, :data:`LINK`, or None."""
    if fps is None or fps == LINK:
        return
    if isinstance(fps, str):
        message = f"must be a number of frames per second, or {LINK}, not {show(fps)}"
    elif fps > 0:
        return
    else:
        message = f"frames per second must be greater than 0, not {fps:g}"
    raise UsageError.of("positive-fps", "option --fps", message, "give a rate")


def require_seeds(until: str | None, boards: Sequence[Board]) -> None:
    """Raise :class:`UsageError` unless seeds of place and route may be given: up to ``until``, on all ``boards``."""
    where, remedy = "option --place-route-seeds", "leave one of them out"
    if until not in (None, "bitstream"):
        message = f"must not be given with --until {until}, which places and routes nothing"
        raise UsageError.of("place-route-seeds", where, message, remedy)
    for board in boards:
        if board.tools.vendor:
            message = f"must not be given with board {board.name}: {board.tools.title} places and routes in its own way"
            raise UsageError.of("place-route-seeds", where, message, remedy)


def requested(
    board: Board | str, *, fps: Rate = None, clock_mhz: float | None = None,
    budget: Asked | None = None, what_if: bool = False, link: LinkOptions = OWN, loops: str = AUTO,
    interleave: int | str = 1, packaging: Packaging = OWN_NAMES, memory: str = AUTO, holding: Holding | None = None,
    fixed: bool = False,
) -> Request:
    """Check the options of :func:`hwflow.api.compiler.compile`, all but how a budget compares with what the model's
    frames leave of the part.

    Raises :class:`UsageError` with a finding for each invalid value.
    """
    gathered = Gathered()
    known, clock = None, None
    limits: Amounts = {}
    with gathered.check():
        known = board_named(board) if isinstance(board, str) else board
    with gathered.check():
        check_rate(fps)
    with gathered.check():
        if known is None:
            check_positive(clock_mhz)
        else:
            clock = clock_for(known, clock_mhz)
            _check_link(known, clock, link)
    with gathered.check():
        if loops not in LOOPS:
            message = f"must be one of {', '.join(LOOPS)}, not {show(loops)}"
            raise UsageError.of("known-loops", "option --loops", message, f"{did_you_mean(loops, LOOPS)}choose one")
    with gathered.check():
        if memory not in MEMORIES:
            message = f"must be one of {', '.join(MEMORIES)}, not {show(memory)}"
            remedy = f"{did_you_mean(memory, MEMORIES)}choose one"
            raise UsageError.of("known-memory", "option --memory", message, remedy)
        if memory == ALL and known is not None and not known.memory_bytes:
            others = ", ".join(board.name for board in all_boards() if board.memory_bytes)
            raise UsageError.of(
                "external-memory", "option --memory", f"{known.name} must have a memory, but hwflow knows of none",
                f"leave the option out, or choose another board: {others}",
            )
    with gathered.check():
        if interleave != AUTO and (not isinstance(interleave, int) or not 1 <= interleave <= MOST_INTERLEAVED):
            message = f"must be {AUTO}, or a number of frames from 1 to {MOST_INTERLEAVED}, not {show(str(interleave))}"
            raise UsageError.of("interleave-count", OPTION, message, "for example --interleave auto")
    with gathered.check():
        _check_name(packaging)
    with gathered.check():
        limits = amounts(budget)
        if known is not None:
            beyond_part(known, limits, carrier=carrier_name(known, link), what_if=what_if)
    with gathered.check():
        if holding is not None and holding.loadable and packaging.inline_weights:
            message = "must not be given with --loadable: tables that are written read their first words from files"
            raise UsageError.of("inline-loadable", "option --inline-weights", message, "leave out one of the two")
    if holding is not None and holding.loadable:
        with gathered.check():
            memory = _with_loads(known, memory)
    gathered.require_none()
    assert known is not None and clock is not None, "else there is a finding"
    return Request(
        known, clock, clock_mhz is not None, fps, limits, what_if=what_if, link=link, loops=loops,
        interleave=interleave if isinstance(interleave, int) else None, packaging=packaging, memory=memory,
        holding=holding, fixed=fixed,
    )


def _with_loads(board: Board | None, memory: str) -> str:
    """Return --memory of a design whose tables are loaded; refuse what cannot be together."""
    if board is not None and board.zynq is not None:
        raise UsageError.of(
            "loadable-board", "option --loadable",
            f"must be given for a board with a link, not for {board.name}, whose processor sends frames by DMA",
            "choose another board: 'hwflow boards' lists them",
        )
    if memory == ALL:
        raise UsageError.of(
            "loadable-memory", "option --memory",
            "must not be 'all' with --loadable: what is loaded stands on the chip", "leave out one of the two",
        )
    return NONE


def _check_name(packaging: Packaging) -> None:
    """Raise :class:`UsageError` unless the modules' prefix is a short Verilog identifier."""
    name = packaging.name
    if name is None or (identifier(name) == name and "__" not in name and len(name) <= LONGEST_NAME):
        return
    message = (
        f"must be a Verilog identifier of at most {LONGEST_NAME} letters, digits and single underscores, "
        f"not {show(name)}"
    )
    example = identifier(name)[:LONGEST_NAME].strip("_")
    raise UsageError.of("module-name", "option --name", message, f"for example --name {example}")


def _check_link(board: Board, clock: ClockPlan, link: LinkOptions) -> None:
    """Raise :class:`UsageError` where the board has no such link, the serial port does not make its rate, or the clock
    does not reach it."""
    given, baud = link.given, link.baud
    if len(given) > 1:
        raise UsageError.of(
            "one-link", f"option {given[0]}", f"must not be given with {given[1]}", "leave one of them out"
        )
    if baud is not None and board.uart is None:
        raise UsageError.of(
            "serial-port", "option --baud", f"{board.name} must have a serial port, not only {board.transport}",
            "leave the option out",
        )
    if baud is not None and baud < 1:
        raise UsageError.of("positive-baud", "option --baud", f"must be 1 or more, not {baud}", "give a rate")
    if board.uart is not None or given:
        carrier_for(board, clock.link_hz, link)
