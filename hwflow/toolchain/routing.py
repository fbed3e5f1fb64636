"""Place and route with several strategies in parallel, until a result meets timing.

A router may not converge on one placement, and route another one of the same design in minutes. So if the first
strategy takes long, a second runs beside it; one that does not converge (:class:`Watch`) makes room for the next; the
first result that meets timing ends all others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from hwflow.errors import Finding, ToolError
from hwflow.sim import programs
from hwflow.toolchain.place_route_progress import PlaceRouteProgress, read_progress, read_shortage
from hwflow.toolchain.tool import Found, Stop, Tool, run

Heard = Callable[[PlaceRouteProgress], None]
Command = Callable[["Files", Sequence[str]], list[str]]

FIRST = 2  # attempts before another design is tried; as many run in parallel
ALONE_SECONDS = 30.0  # before a second attempt starts beside the first
POLL_SECONDS = 1.0
REPORTS = 30  # consecutive reports of a router in which the rest must shrink by a tenth, else it does not converge,
WIRES = 2000  # or one for each so many wires that are left: the first router reports every thousand that it has tried,
# of which the most critical ones, which come first, take half of the others' places
PATIENCE = 1.5  # limit of the routing time, relative to packing and placing
LONGEST = 3.0  # the same relative to that limit, where the rest shrinks so fast that routing will have ended by then
LEAST_SECONDS = 60.0  # least such limit
LONGER = 1.5  # limit of attempts for better timing, relative to the time of the first result
NEARLY = 0.03  # share of its clock that a result may miss for more attempts to pay: seeds differ by 5 % and more
NEARLY_ASKED = 0.15  # the same where a slower clock is not what was asked for
QUICK_SECONDS = 240.0  # a result that took no longer is worth other seeds
NEARLY_QUICK = 0.08  # where it misses its clock by no more
TOO_MANY = "ask for fewer frames per second (--fps), or choose a larger board"
REMEDY = "if the design does not fit, ask for fewer frames per second (--fps) or choose a larger board"


@dataclass(frozen=True)
class Files:
    """The files that place and route writes, relative to the output folder."""

    placed: str
    report: str
    log: str

    def of_attempt(self, number: int) -> Files:
        """Return the files of an attempt: these for the first one, others beside them for the rest."""
        if number == 1:
            return self
        return Files(*(str(Path(name).with_stem(f"{Path(name).stem}_{number}")) for name in self.names))

    @property
    def names(self) -> tuple[str, str, str]:
        return self.placed, self.report, self.log


@dataclass(frozen=True)
class Routed:
    """A placed and routed design. ``strategy``: its options; ``missed``: the share by which the worst clock misses its
    target, 0 or less if all meet theirs."""

    strategy: Sequence[str]
    missed: float


class NotRouted(ToolError):
    """No strategy gave a routed design, or the part has too few cells. ``seconds``: spent in vain, by step."""

    seconds: Mapping[str, float] = {}


@dataclass
class Watch:
    """Decides from an attempt's progress and time whether it still converges."""

    clock: Callable[[], float] = time.monotonic
    _placed: float | None = None  # seconds that packing and placing took
    _left: int | None = None  # to route
    _least: int | None = None  # what was left at the last time that it had become a tenth less,
    _reports: int = 0  # and reports since
    _shrunk: float = 0.0  # when that was
    _tenth: float | None = None  # seconds that it took

    def __post_init__(self) -> None:
        self._start = self.clock()

    def hear(self, progress: PlaceRouteProgress) -> None:
        """Record progress."""
        if progress.phase != "routing":
            return
        now = self.clock()
        if self._placed is None:
            self._placed = now - self._start
        self._left = None if progress.left is None else progress.left + progress.late
        if self._left is None or self._least is None or self._left <= 0.9 * self._least:
            self._tenth = None if self._left is None or self._least is None else now - self._shrunk
            self._least, self._reports, self._shrunk = self._left, 0, now
        else:
            self._reports += 1

    def hopeless(self) -> str | None:
        """Return why routing does not converge, or None while it may."""
        if self._placed is None:
            return None
        left = "" if self._left is None else f"{self._left:,} wire{'s' if self._left != 1 else ''} left"
        if self._reports >= max(REPORTS, (self._least or 0) // WIRES):
            return f"routing does not converge, {left}"
        most, now = max(LEAST_SECONDS, PATIENCE * self._placed), self.clock()
        spent = now - self._start - self._placed
        if spent <= most:
            return None
        # Each wire takes about as long as the one before: the rest is nine times what has gone.
        rest = None if self._tenth is None else 9 * max(self._tenth, now - self._shrunk)
        if rest is not None and spent + rest <= LONGEST * most:
            return None
        return f"not routed within {spent:.0f} s" + (f", {left}" if left else "")


@dataclass
class _Attempt:
    """Place and route with one strategy, and the ``seconds`` that it took. ``begun``: placing has begun."""

    number: int
    options: Sequence[str]
    files: Files
    watch: Watch | None = None
    stop: Stop = field(default_factory=Stop)
    start: float = 0.0
    seconds: float = 0.0
    begun: bool = False
    shortage: str | None = None


class _Race:
    """Attempts in parallel, as many as the machine has cores for, and the best result so far."""

    def __init__(
        self, out: Path, tool: Tool, found: Found, command: Command, say: Callable[[str], None], every: bool
    ) -> None:
        self._every = every
        self._out, self._tool, self._found, self._command, self._say = out, tool, found, command, say
        self._at_once = min(FIRST, programs.core_count())
        self._pool = ThreadPoolExecutor(self._at_once)
        self._running: dict[Future[float], _Attempt] = {}
        self.heard: Heard | None = None
        self.best: _Attempt | None = None
        self.missed = 1.0  # by the best one, as in :class:`Routed`
        self.failures: list[Finding] = []

    def run(self, attempts: Sequence[_Attempt], last: _Attempt) -> None:
        """Run until one of these meets timing, or all have ended; ``every``: always all. ``last`` has no time limit."""
        waiting = list(attempts)
        while waiting or self._running:
            alone = self._since_start() if self._running and not self._every else ALONE_SECONDS
            if waiting and alone >= ALONE_SECONDS and len(self._running) < self._at_once:
                self._begin(waiting.pop(0), last)
                continue
            limits = [POLL_SECONDS]
            if waiting and len(self._running) < self._at_once:
                limits.append(ALONE_SECONDS - alone)
            if self.best is not None and not self._every:
                limits.append(max(LEAST_SECONDS, LONGER * self.best.seconds) - self._since_start())
                if limits[-1] <= 0:
                    return
            self._wait(min(limits))
            if self.best is not None and self.missed <= 0 and not self._every:
                return

    def _since_start(self) -> float:
        """Return the seconds since the latest running attempt began."""
        return time.monotonic() - max(attempt.start for attempt in self._running.values())

    def _begin(self, attempt: _Attempt, last: _Attempt) -> None:
        tool = f"{self._tool.name} {self._found.version_text}".removesuffix(" unknown")
        self._say(f"place_route: {tool}" + (f", attempt {attempt.number}" if attempt.number > 1 else ""))
        attempt.start = time.monotonic()
        attempt.watch = None if attempt is last else Watch()
        self._running[self._pool.submit(self._run, attempt)] = attempt

    def _run(self, attempt: _Attempt) -> float:
        def listen(line: str) -> None:
            if attempt.shortage is None and (shortage := read_shortage(line)) is not None:
                attempt.shortage = shortage
                attempt.stop(shortage)
            progress = read_progress(line)
            if progress is None:
                return
            attempt.begun = attempt.begun or progress.phase != "packing"
            if self.heard is not None and all(attempt.number <= other.number for other in [*self._running.values()]):
                self.heard(progress)
            if attempt.watch is not None:
                attempt.watch.hear(progress)

        files, step = attempt.files, f"place_route ({self._tool.name})"
        try:
            run(
                self._found, self._command(files, attempt.options), self._out, self._out / files.log, step=step,
                remedy=REMEDY, outputs=(files.placed, files.report), heard=listen, stop=attempt.stop,
            )
        except ToolError:
            if attempt.shortage is not None:
                message = f"{attempt.shortage} (log: {self._out / files.log})"
                raise NotRouted.of("part-room", step, message, TOO_MANY) from None
            raise
        return _missed(self._out / files.report)

    def _wait(self, seconds: float) -> None:
        """Wait until an attempt ends, or ``seconds``; record its result, and stop attempts that do not converge.

        Raises :class:`ToolError` if no other attempt can help: the tool fails before it places anything,
        :class:`NotRouted` where the part has too few cells.
        """
        done, others = wait(self._running, seconds, FIRST_COMPLETED)
        for future in others:
            attempt = self._running[future]
            if attempt.watch is not None and (reason := attempt.watch.hopeless()) is not None:
                attempt.stop(reason)
        for future in done:
            attempt = self._running.pop(future)
            attempt.seconds = time.monotonic() - attempt.start
            try:
                missed = future.result()
            except ToolError as error:
                finding = error.findings[0]
                if isinstance(error, NotRouted):
                    raise
                if not attempt.begun and finding.rule != "tool-stopped" and self.best is None:
                    raise
                self.failures.append(finding)
                self._say(f"place_route: {finding.message.partition(' (log: ')[0]}")
                continue
            if missed > 0:
                self._say(f"place_route: timing missed by {missed:.0%}")
            if self.best is None or missed < self.missed:
                self.best, self.missed = attempt, missed

    def end(self) -> None:
        """Stop all running attempts."""
        for attempt in self._running.values():
            attempt.stop("another attempt finished first")
        self._pool.shutdown()


def place_route(
    out: Path, tool: Tool, found: Found, files: Files, command: Command, strategies: Sequence[Sequence[str]],
    say: Callable[[str], None], heard: Heard | None = None, another: Callable[[], bool] | None = None,
    more_seeds: Sequence[Sequence[str]] = (), *, every: bool = False, nearly: float = NEARLY,
) -> Routed:
    """Place and route in ``out`` and leave the best result in ``files``.

    ``strategies``: options of ``tool``, in the order in which they are tried; ``command`` turns them into its
    arguments. The first result that meets timing ends all attempts. If it misses, those beside it get :data:`LONGER`
    times its time, and the better result is kept. ``another`` is asked, when the :data:`FIRST` strategies gave no
    result, whether the caller has an easier design; if so, no other strategy is tried. If the best of them nearly meets
    timing (misses it by a share of ``nearly`` at the most), the others are tried, too; if it was quick, ``more_seeds``
    before them, also where it misses more (:data:`NEARLY_QUICK`). The last strategy has no time limit, unless there is
    a result.
    ``say`` is called with a line as each attempt starts or is given up, ``heard`` with the progress of the first one
    running. ``every``: run all ``strategies`` to their ends, and keep the one with the best clock.

    Raises :class:`NotRouted` if no strategy gave a result, or the part has too few cells, which is said before anything
    is placed (``another`` is asked then, too), :class:`ToolError` if the tool fails before it places
    anything, with the end of its log.
    """
    race = _Race(out, tool, found, command, say, every)
    race.heard = heard
    options = [*strategies, *more_seeds]
    known = [_Attempt(number, each, files.of_attempt(number)) for number, each in enumerate(options, 1)]
    attempts, seeds = known[: len(strategies)], known[len(strategies) :]
    first = attempts if every else attempts[:FIRST]
    try:
        race.run(first, attempts[-1])
        if race.best is None:
            further = not (another is not None and len(attempts) > FIRST and another())
        elif every:
            further = False
        else:
            if race.best.seconds <= QUICK_SECONDS and 0 < race.missed <= NEARLY_QUICK:
                race.run(seeds, attempts[-1])
            further = 0 < race.missed <= nearly
        if further:
            race.run(attempts[len(first) :], attempts[-1])
    except NotRouted:
        if another is not None:
            another()
        raise
    finally:
        race.end()
    if race.best is None:
        raise NotRouted(race.failures[0])
    _keep(out, known, race.best)
    return Routed(race.best.options, race.missed)


def _keep(out: Path, attempts: Sequence[_Attempt], best: _Attempt) -> None:
    """Move the best attempt's files to the place of the first one's, and keep the logs of the others."""
    first = attempts[0].files
    if best.number > 1:
        (out / first.log).replace(out / Path(first.log).with_stem(f"{Path(first.log).stem}_1"))
        for name, kept in zip(best.files.names, first.names, strict=True):
            (out / name).replace(out / kept)
    for attempt in attempts[1:]:
        for name in (attempt.files.placed, attempt.files.report):
            (out / name).unlink(missing_ok=True)


def _missed(report: Path) -> float:
    """Return the share by which the worst clock of nextpnr's report misses its target."""
    fmax: Mapping[str, Mapping[str, float]] = json.loads(report.read_text())["fmax"]
    return max((1 - clock["achieved"] / clock["constraint"] for clock in fmax.values()), default=0.0)
