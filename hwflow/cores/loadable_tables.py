"""Tables that are loaded while a design runs: a core with the writers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hdl_lib.loading.table_loader import Rows
from hdl_lib.loading.table_writer import LoadableCore
from hdl_lib.memories.rom import bank_words, banks_of
from hwflow.cores.operator import Built, MemoryFile


def with_writers(built: Built) -> Built:
    """Return a core with a writer for each of its tables that are loadable; itself, if none is."""
    ports = [file.port for file in built.files if file.port is not None]
    return replace(built, component=LoadableCore(built.component, ports)) if ports else built


def loadable(files: Sequence[MemoryFile]) -> list[MemoryFile]:
    """Return the tables that are loaded, in the order of the loader."""
    return [file for file in files if file.loadable]


def rows_of(file: MemoryFile) -> Rows:
    """Return the form in which a table is loaded."""
    depth = len(file.words)
    return Rows(banks_of(file.width, depth) * file.width, bank_words(file.width, depth))
