"""What stands in several files of the project says the same in all of them."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import generated
from tests.markdown_links import anchors, links

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ADDRESS: str = PROJECT["urls"]["Homepage"]
PAGES = sorted(
    page
    for pattern in ("*.md", ".github/**/*.md", "docs/**/*.md", "examples/**/*.md", "tests/*.md")
    for page in ROOT.glob(pattern)
)
GENERATED = {ROOT / "docs" / path: cache(page) for path, page in generated.PAGES.items()}
YAML = sorted(file for pattern in ("*.yml", ".*.yaml", ".github/**/*.yml") for file in ROOT.glob(pattern))
FORMS = sorted(file for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def sources() -> Iterator[Path]:
    for folder in ("hwflow", "hdl_lib", "sim", "boards"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".tcl", ".v", ".cpp", ".h"))


def broken(page: Path, target: str) -> str | None:
    """What is wrong with a link from ``page``; None if nothing is, or if it leads out of the project."""
    address, _, anchor = target.partition("#")
    inside = re.match(rf"{re.escape(ADDRESS)}/(?:blob|tree)/main/(.+)", address)
    if inside:
        path = ROOT / inside[1]
    elif re.match(r"[a-z]+:", address):
        return None
    else:
        path = page if not address else page.parent / address
    path = path.resolve()
    made = GENERATED.get(path)
    if made is None and not path.exists():
        return f"{relative(page)}: no file {target}"
    if anchor and anchor not in anchors(path.read_text() if made is None else made()):
        return f"{relative(page)}: no heading {target}"
    return None


def test_the_version_has_one_place() -> None:
    version = PROJECT["version"]
    assert [relative(path) for path in sources() if f'"{version}"' in path.read_text()] == []
    assert [relative(path) for path in sources() if re.search(r"^__version__", path.read_text(), re.M)] == []


def test_the_changelog_ends_with_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    titles = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.M)
    assert [title for title, _ in titles[:2]] == ["Unreleased", PROJECT["version"]]
    assert [title for title, date in titles if not date] == ["Unreleased"]
    assert re.findall(r"^\[(.+?)\]: ", text, re.M) == [title for title, _ in titles]


def test_the_licence_is_the_standard_text() -> None:
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"  # apache.org's LICENSE-2.0.txt
    assert PROJECT["license"] == "Apache-2.0"
    assert all((ROOT / file).is_file() for file in PROJECT["license-files"])


def test_the_project_has_one_address() -> None:
    files = [*PAGES, *YAML, ROOT / "pyproject.toml", *sources()]
    found = {match for file in files for match in re.findall(r"https://git\w+\.com/[\w.-]+/hwflow\b", file.read_text())}
    assert found == {ADDRESS}
    assert all(url.startswith(ADDRESS) for url in PROJECT["urls"].values())


def test_the_readme_is_read_elsewhere() -> None:
    """PyPI shows it without the files beside it."""
    assert [target for target in links((ROOT / "README.md").read_text()) if not re.match("https://|#", target)] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_resolve(page: Path) -> None:
    assert [problem for target in links(page.read_text()) if (problem := broken(page, target))] == []


def test_links_of_generated_pages_resolve() -> None:
    found = [broken(page, target) for page, made in GENERATED.items() for target in links(made())]
    assert len(found) > 1 and set(found) == {None}


def test_broken_links_are_noticed() -> None:
    page = ROOT / "docs" / "developers.md"
    assert broken(page, "developers.md#adding-a-board") is None
    assert broken(page, f"{ADDRESS}/blob/main/docs/developers.md#adding-a-board") is None
    for target in ("nowhere.md", "developers.md#nowhere", f"{ADDRESS}/blob/main/nowhere", "#nowhere"):
        assert broken(page, target), target
    assert broken(page, "reference/command-line.md#hwflow-synth") is None
    assert broken(page, "reference/command-line.md#hwflow-synthesize")
    sample = "[a](b.md) `[c](d.md)` [e]\n\n| t |\n|---|\n| ![f](g.png) |\n\n[e]: h.md\n"
    assert links(sample) == ["b.md", "h.md", "g.png"]
    assert anchors("# A title, `code` & [link](x)\n\ntext\n") == {"a-title-code-link"}


@pytest.mark.parametrize("file", YAML, ids=relative)
def test_yaml_parses(file: Path) -> None:
    assert isinstance(yaml.safe_load(file.read_text()), dict)


@pytest.mark.parametrize("file", FORMS, ids=relative)
def test_issue_forms_are_complete(file: Path) -> None:
    form = yaml.safe_load(file.read_text())
    assert {"name", "description", "body"} <= form.keys()
    asked = [entry for entry in form["body"] if entry["type"] != "markdown"]
    assert {entry["type"] for entry in asked} <= {"input", "textarea", "dropdown", "checkboxes"}
    ids = [entry["id"] for entry in asked]
    assert len(ids) == len(set(ids)) and "versions" in ids
    assert all(entry["attributes"]["label"] for entry in asked)


def test_ci_runs_the_commands_of_the_readme_and_builds_the_site() -> None:
    section = (ROOT / "README.md").read_text().split("## Two commands")[1].split("```")[1]
    commands = {line.split("#")[0].strip() for line in section.strip().splitlines()}
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["make"]
    (run,) = [step["run"] for step in job["steps"] if "run" in step]
    (variable,) = job["strategy"]["matrix"]
    targets = job["strategy"]["matrix"][variable]
    assert {run.replace(f"${{{{ matrix.{variable} }}}}", target) for target in targets} == commands | {"make docs"}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
