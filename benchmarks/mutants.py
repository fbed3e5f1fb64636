"""How many of a sample of mutants the tests kill: `make mutants`.

    python benchmarks/mutants.py [--count 200] [--seed 1] [--jobs 2] [--least 0.95] [--again] [--tests PATH ...] [PATH]

A mutant is the code with one small mistake (DeMillo, Lipton, Sayward: Hints on test data selection, Computer 11, 1978):
another comparison, another operator, a number one greater, a condition turned around. It is killed if a test fails, or
takes far longer than with the code as it is. The tests run once with coverage first (``--again``: what that found is in
build/mutants). A mutant then meets, in a copy of the tree, the tests that reach its lines, the cheapest first; one on
lines that run at import alone those that reach anything in its file. Not mutated is what decides no behaviour:
annotations, texts, constants of modules in capitals (patience and the like).

The code is that of hwflow/numerics, hwflow/cores and hwflow/schedule, or of each PATH. The cost models
(hwflow/cores/costs) are left out: they estimate, and tests hold them to synthesized samples within a tolerance, in
which many a small mistake is no fault.

Ends with 1 if fewer than ``--least`` of the mutants are killed. The same seed takes the same mutants of the same code.

By hand, because a sample of a few lines must choose its tests itself: mutmut and cosmic-ray run one test command for
every mutant.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
CODE = ("hwflow/numerics", "hwflow/cores", "hwflow/schedule")
NOT = "hwflow/cores/costs"
TESTS = ("tests/numerics", "tests/cores", "tests/schedule", "tests/operators")
KEPT = ROOT / "build" / "mutants"
ENOUGH = 300  # seconds with coverage: tests of no more are run for a mutant
MORE = 60  # seconds: a mutant has as much processor time as its tests took with coverage, and so much more
STUCK = 8  # times as long on the clock

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And,
}
PYTEST = (sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider")
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A file (relative to the root), the lines of the statement up to the mistake, what it is, and the code with it."""

    file: str
    lines: range
    what: str
    code: str


@dataclass(frozen=True)
class Outcome:
    mutant: Mutant
    killed: bool
    how: str
    seconds: float


def places_of(file: Path) -> list[int]:
    """Return the nodes of a file, by their number in a walk of its tree, of which there is a mutant."""
    nodes = _nodes(file.read_text())[1]
    skipped = {id(part) for node in nodes for top in _decides_nothing(node) for part in ast.walk(top)}
    return [
        number for number, node in enumerate(nodes)
        if isinstance(node, (ast.expr, ast.stmt)) and id(node) not in skipped and _can_mutate(node)
    ]


def mutant_of(file: Path, number: int, root: Path = ROOT) -> Mutant:
    """Return the mutant of a node that :func:`places_of` names."""
    text = file.read_text()
    tree, nodes = _nodes(text)
    node = nodes[number]
    around = (
        n for n in nodes if isinstance(n, ast.stmt) and n.lineno <= node.lineno and node.end_lineno <= n.end_lineno
    )
    first = max((statement.lineno for statement in around), default=node.lineno)  # a decorator's are in none
    before = ast.unparse(node).splitlines()[0]
    _mutate(node)
    what = f"{text.splitlines()[node.lineno - 1].strip()!r}: {before} becomes {ast.unparse(node).splitlines()[0]}"
    return Mutant(str(file.relative_to(root)), range(first, node.lineno + 1), what, ast.unparse(tree))


def _nodes(text: str) -> tuple[ast.Module, list[ast.AST]]:
    tree = ast.parse(text)
    return tree, list(ast.walk(tree))


def _can_mutate(node: ast.AST) -> bool:
    return _mutate(copy.copy(node))


def _mutate(node: ast.AST) -> bool:
    """Make the mistake of this node, in place but not below it; whether there is one for it."""
    match node:
        case ast.Compare(ops=[operator, *others]) if type(operator) in _OPERATORS:
            node.ops = [_other(operator), *others]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in _OPERATORS:
            node.op = _other(operator)
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
            node.test = ast.UnaryOp(ast.Not(), test)
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            node.func = ast.Name(_NAMES[name])
        case _:
            return False
    return True


def _other(operator: ast.AST) -> ast.AST:
    return _OPERATORS[type(operator)]()


def _decides_nothing(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are annotations, texts, or the value of a module's constant in capitals."""
    for name in ("annotation", "returns"):
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            yield part
    match node:
        case ast.JoinedStr():
            yield node
        case ast.Module(body=body):
            for statement in body:
                targets = getattr(statement, "targets", [getattr(statement, "target", None)])
                names = [name for t in targets for name in (t.elts if isinstance(t, ast.Tuple) else [t])]
                if all(isinstance(name, ast.Name) and name.id.isupper() for name in names):
                    yield statement
        case ast.Raise() | ast.Assert():  # defects of our own, which no test can bring about
            yield node
        case ast.Call(keywords=keywords):
            yield from (k for k in keywords if k.arg in ("maxsize", "strict", "kind", "dtype"))


@dataclass(frozen=True)
class Baseline:
    """What the tests reach without a mutant: lines of each file, by test, and how long each test takes."""

    data: CoverageData
    seconds: dict[str, float]

    def asked(self, mutant: Mutant) -> dict[str, float]:
        """Return the tests that reach one of the mutant's lines, the cheapest first, and the seconds of each."""
        reached = self.data.contexts_by_lineno(mutant.file)
        names = self._names(reached.get(line, ()) for line in mutant.lines) or self._names(reached.values())
        ordered = sorted((self.seconds.get(name, 0.0), name) for name in names)
        until = itertools.accumulate(seconds for seconds, _ in ordered)
        return {name: seconds for (seconds, name), total in zip(ordered, until, strict=True) if total <= ENOUGH}

    @staticmethod
    def _names(contexts: Iterable[Sequence[str]]) -> set[str]:
        return {context.rpartition("|")[0] for group in contexts for context in group} - {""}


def measure(tests: Sequence[str], tree: Path, jobs: int) -> None:
    """Run the tests with coverage in a copy of the tree, and keep what was found."""
    command = [
        *PYTEST, "-n", str(jobs), "--dist", "worksteal", "--cov", "--cov-context=test", "--cov-report=",
        "--junitxml=tests.xml", *tests,
    ]
    if status := subprocess.run(command, cwd=tree, env=_environment(tree)).returncode:
        sys.exit(f"the tests must pass before mutants meet them, not end with {status}")
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.copy2(tree / "build" / "coverage" / "data", KEPT / "lines")
    shutil.copy2(tree / "tests.xml", KEPT / "tests.xml")


def baseline() -> Baseline:
    """Read what :func:`measure` kept."""
    data = CoverageData(str(KEPT / "lines"))
    data.read()
    cases = xml.parse(KEPT / "tests.xml").iter("testcase")
    return Baseline(data, {_name(case): float(case.get("time", 0)) for case in cases})


def _name(case: xml.Element) -> str:
    """Return the name that pytest takes."""
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def run(mutant: Mutant, tests: Mapping[str, float], tree: Path) -> Outcome:
    """Run tests, of which each takes so many seconds without the mutant, with it in a copy of the tree."""
    if not tests:
        return Outcome(mutant, False, "no test reaches it", 0.0)
    file = tree / mutant.file
    before = file.read_text()
    begin = time.monotonic()
    file.write_text(mutant.code)
    try:
        how = _asked(list(tests), tree, MORE + round(sum(tests.values())))
    finally:
        file.write_text(before)
    return Outcome(mutant, how != "passed", how, time.monotonic() - begin)


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


def _asked(tests: Sequence[str], tree: Path, limit: int) -> str:
    command = ["sh", "-c", f'ulimit -t {limit}; exec "$@"', "sh", *PYTEST, "-x", *tests]
    with tempfile.TemporaryFile("w+") as output:
        program = subprocess.Popen(
            command, cwd=tree, env=_environment(tree), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = program.wait(STUCK * limit)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
            return "too slow"
        output.seek(0)
        failed = [line for line in output.read().splitlines() if line.startswith(("FAILED", "ERROR"))]
    if status == 0:
        return "passed"
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "too slow"
    return failed[0].split(" - ")[0] if failed else f"pytest ends with {status}"


def sample(where: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Choose so many mutants of the code in these folders or files, each as likely as any other."""
    named = [ROOT / name for name in where]
    files = [f for path in named for f in ([path] if path.suffix == ".py" else sorted(path.rglob("*.py")))]
    files = [file for file in files if not file.is_relative_to(ROOT / NOT)]
    places = [(file, number) for file in files for number in places_of(file)]
    print(f"{len(places):,} mutants of {len(files)} files", flush=True)
    chosen = random.Random(seed).sample(places, min(count, len(places)))
    return [mutant_of(file, number) for file, number in chosen]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where", nargs="*", default=CODE, metavar="PATH")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="with the lines and times of the tests' last run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.95, help="share that must be killed")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="that are asked")
    options = parser.parse_args()
    chosen = sample(options.where, options.count, options.seed)
    trees: SimpleQueue[Path] = SimpleQueue()
    survivors: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies = [_copied(Path(folder) / str(job)) for job in range(options.jobs)]
        if not options.again:
            measure(options.tests, copies[0], options.jobs)
        measured = baseline()
        for tree in copies:
            trees.put(tree)

        def asked(mutant: Mutant) -> Outcome:
            tree = trees.get()
            try:
                return run(mutant, measured.asked(mutant), tree)
            finally:
                trees.put(tree)

        for number, outcome in enumerate(pool.map(asked, chosen), 1):
            mutant, verdict = outcome.mutant, "killed  " if outcome.killed else "SURVIVED"
            survivors += [] if outcome.killed else [outcome]
            print(
                f"{number:4} {verdict} {mutant.file}:{mutant.lines[-1]} {mutant.what} ({outcome.how}, "
                f"{outcome.seconds:.0f} s)", flush=True,
            )
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} mutants killed ({killed / max(1, len(chosen)):.1%})")
    return int(killed < options.least * len(chosen))


def _copied(tree: Path) -> Path:
    """Copy what is under version control into ``tree``."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


if __name__ == "__main__":
    sys.exit(main())
