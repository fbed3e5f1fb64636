"""Cores whose tables stand in themselves instead of files, so that Amaranth alone can simulate or synthesize them."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.lib.wiring import Component

from hdl_lib.chain import Chain
from hdl_lib.loading.table_writer import LoadableCore
from hdl_lib.memories.rom import Table
from hwflow.cores.operator import MemoryFile


def write_out(core: Component, files: Sequence[MemoryFile]) -> None:
    """Give ``core``, before it is elaborated, the words of ``files`` in place of the tables that read them: they are
    attributes of it or of the cores in a chain. What is loaded into those of a loadable core changes nothing then."""
    if isinstance(core, LoadableCore):
        core = core.core
    unread = {file.table.file: file for file in files}
    for part in (core, *(link.core for _, link in core.links)) if isinstance(core, Chain) else (core,):
        for name, value in list(vars(part).items()):
            if isinstance(value, Table):
                setattr(part, name, _words(value, unread))
            elif isinstance(value, tuple) and value and all(isinstance(table, Table) for table in value):
                setattr(part, name, tuple(_words(table, unread) for table in value))
    assert not unread, f"memory files no table of the core reads: {sorted(map(str, unread))}"


def _words(table: Table, files: dict[str | None, MemoryFile]) -> Table:
    if table.file is None:
        return table
    file = files.pop(table.file)
    assert (file.width, len(file.words)) == (table.width, table.depth), "file and table differ in size"
    return Table.of_words(file.words, file.width)
