"""Pages of the reference that the code itself says. mkdocs.yml has this file as a hook, which adds them to the site.

    python docs/generated.py FOLDER     writes them as Markdown files
"""

from __future__ import annotations

import argparse
import html
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDE = 10  # columns


def command_line_page() -> str:
    """Return every command with its usage, arguments and options, from the parser."""
    from hwflow.cli.parser import command_line

    parser = command_line()
    lines = ["# Command line", "", "Made from the parser of the command line: the same as `hwflow COMMAND --help`.", ""]
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        lines += [f"## hwflow {name}", "", f"{_sentence(command.description)}.", ""]
        actions = sorted(command._actions, key=lambda action: bool(action.option_strings))  # arguments, then options
        rows = [(_spelling(action), _help(action)) for action in actions if action.dest != "help"]
        lines += [*_table(("argument or option", "meaning"), rows), ""]
    last = "`hwflow --version` prints versions. [Exit codes](../how-to/scripts.md#exit-codes) are the same for all."
    return "\n".join([*lines, last, ""])


def boards_page() -> str:
    """Return what `hwflow boards` lists, by family."""
    from hwflow.boards import all_boards
    from hwflow.codegen.board.carriers.offered import offered

    lines = [
        "# Boards", "",
        "What `hwflow boards` lists. *LUT*, *FF*, *DSP* and *BRAM* are what the part has. *MHz* is the default clock; "
        "`--clock` sets another. *Host* is how the board is connected, with the baud rate at the default clock; pins "
        "of a serial adapter are named from the board's side. With an open toolchain `synth` makes the bitstream; with "
        "a vendor's tool it makes "
        "[a project](../how-to/run-on-board.md#boards-that-need-a-vendors-tool).",
    ]
    families: dict[str, list[Any]] = {}
    for board in all_boards():
        families.setdefault(board.part.family, []).append(board)
    for family, boards in sorted(families.items()):
        kind = "vendor" if boards[0].tools.vendor else "open"
        lines += ["", f"## {family}", "", f"Toolchain: {boards[0].toolchain}, {kind}.", ""]
        rows = [
            (
                f"`{b.name}`", _text(b.title), f"{b.part.lut:,}", f"{b.part.ff:,}",
                str(b.part.dsp), str(b.part.bram), f"{b.clock_mhz:g}", _text("; ".join(offered(b).values())),
            )
            for b in boards
        ]
        lines += _table(("board", "what", "LUT", "FF", "DSP", "BRAM", "MHz", "host"), rows, right=range(2, 7))
    return "\n".join([*lines, ""])


def clauses_page() -> str:
    """Return every rule with an example of what it says, which the tests have."""
    from hwflow.onnxspec import clauses

    lines = [
        "# Clauses", "",
        f"The {len(clauses.RULES)} rules that `hwflow check` holds a model against: clauses of the ONNX IR "
        "specification that a model file decides, and rules of hwflow's own. Each stands with one of the findings that "
        "tests expect. *IR* is the IR version from which it holds. A *pedantic* rule is about form: `--pedantic` shows "
        "its findings.",
    ]
    examples = _examples()
    for found in pkgutil.walk_packages(clauses.__path__, f"{clauses.__name__}."):
        module = importlib.import_module(found.name)
        rules = [*getattr(module, "RULES", ()), *getattr(module, "LATE_RULES", ())]
        if not rules:  # what the others share
            continue
        title = _title(found.name.rpartition(".")[2])
        lines += ["", f"## {title}", "", _sentence((module.__doc__ or "").splitlines()[0]), ""]
        rows = [
            (
                f"**{rule.id}**{{ #{rule.id} }}", f"{rule.severity}{', pedantic' if rule.pedantic else ''}",
                str(rule.since_ir or ""), examples.get(rule.id, ""), _text(rule.remedy),
            )
            for rule in rules
        ]
        lines += _table(("rule", "severity", "IR", "for example", "remedy"), rows)
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "reference/boards.md": boards_page,
    "reference/clauses.md": clauses_page,
    "reference/command-line.md": command_line_page,
}
"""By path in docs/."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages: a hook of mkdocs."""
    from mkdocs.structure.files import File

    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Take the list of headings from beside a page with a wide table: a hook of mkdocs."""
    if any(line.startswith("|") and line.count("|") > WIDE for line in markdown.splitlines()):
        page.meta["hide"] = ["toc"]


def _examples() -> dict[str, str]:
    """Return for each rule the first finding that its tests expect, without severity and remedy."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    result: dict[str, str] = {}
    for path in sorted((ROOT / "tests" / "onnxspec" / "clauses").glob("*/test_*.py")):
        module = importlib.import_module(f"tests.onnxspec.clauses.{path.parent.name}.{path.stem}")
        for twin in getattr(module, "TWINS", ()):
            text = next((finding for finding in twin.findings if f"[{twin.clause}]" in finding), None)
            if text is not None:
                said = text.split("\n")[0].split(": ", 1)[1].replace(f" [{twin.clause}]", "")
                result.setdefault(twin.clause, _text(said))
    return result


def _spelling(action: argparse.Action) -> str:
    name = action.dest.upper() if action.option_strings else action.dest
    value = str(action.metavar or ("|".join(map(str, action.choices)) if action.choices else name))
    takes = "" if action.nargs == 0 else f" {value}"
    spellings = [f"{option}{takes}" for option in action.option_strings] or [value]
    return ", ".join(f"`{spelling}`" for spelling in spellings)


def _help(action: argparse.Action) -> str:
    text = _text((action.help or "").replace("%%", "%"))
    return f"{text}; required" if action.required and action.option_strings else text


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]], right: Iterable[int] = ()) -> Iterator[str]:
    titles, right = tuple(titles), set(right)
    yield f"| {' | '.join(titles)} |"
    yield f"|{''.join('---:|' if n in right else '---|' for n in range(len(titles)))}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _text(text: str) -> str:
    """Return ``text`` as Markdown that shows it as it is, in a table's cell."""
    text = html.escape(text, quote=False).replace("|", "&#124;")
    for sign in "\\`*_[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def _sentence(text: str | None) -> str:
    return (text or "")[:1].upper() + (text or "")[1:]


def _title(name: str) -> str:
    return "onnx's checks" if name == "onnx_checks" else _sentence(name.replace("_", " "))


if __name__ == "__main__":
    for name, make in PAGES.items():
        target = Path(sys.argv[1]) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(make(), encoding="utf-8")
