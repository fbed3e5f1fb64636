"""Dask's workers: processes of this machine, or those of a scheduler elsewhere. Dask is an optional extra."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.display import show
from hwflow.errors import ToolError, UsageError
from hwflow.sim.programs import core_count, uninterrupted

CONNECT_SECONDS = 15.0
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
"""Of the scheduler, which has an HTTP server nevertheless: at a free port, as two sweeps may run at once."""


@dataclass(frozen=True)
class Workers:
    """What does the jobs of a sweep: a client of Dask."""

    client: Any

    def submit(self, function: Callable[..., Any], *arguments: Any, key: str) -> Any:
        """Return the future of a function's result on a worker; an argument may be the future of another one. A job
        whose worker dies is done by another; one with the ``key`` of a job that is known is that job."""
        return self.client.submit(function, *arguments, key=key, pure=False)

    def ended(self, futures: Sequence[Any]) -> Iterator[Any]:
        """Yield each of these when it has ended, with a result or without."""
        yield from importlib.import_module("distributed").as_completed(futures, loop=self.client.loop)


@contextmanager
def started_workers(address: str | None, number: int | None, scratch: Path) -> Iterator[Workers]:
    """Yield workers. ``address``: of a scheduler; None: ``number`` processes of this machine (None: one a
    core), which put temporary files into ``scratch`` and end with the body, or with this process, however it ends.

    Raises :class:`ToolError` without Dask, :class:`UsageError` where no scheduler answers.
    """
    if importlib.util.find_spec("distributed") is None:
        raise ToolError.of(
            "tool-missing", "tool dask", "must be installed for 'hwflow explore', but is not found",
            "pip install 'hwflow[explore]'",
        )
    if address is not None and number is not None:
        raise UsageError.of(
            "explore-option", "option --workers", "must not be given with --dask: the cluster has its own",
            "leave one of them out",
        )
    if number is not None and number < 1:
        raise UsageError.of("explore-option", "option --workers", f"must be 1 or more, not {number}", "give a number")
    distributed = importlib.import_module("distributed")
    with ExitStack() as ends:
        cluster: Any = address
        if address is None:
            with uninterrupted():  # Ctrl-C is for this process, which ends the others
                cluster = distributed.LocalCluster(
                    n_workers=number or core_count(), threads_per_worker=1, memory_limit=0,
                    scheduler_kwargs=NO_DASHBOARD, silence_logs=logging.CRITICAL, local_directory=str(scratch),
                    env={"TMPDIR": str(scratch)},
                )
            ends.callback(_end, cluster)
        try:
            client = distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError.of(
                "dask-scheduler", "option --dask", f"a scheduler of Dask must answer at {show(address)}, but: {error}",
                "start one: 'dask scheduler', and 'dask worker ADDRESS' on each machine",
            ) from None
        ends.callback(_close, client)
        yield Workers(client)


def _close(client: Any) -> None:
    with suppress(Exception):  # the scheduler may be gone
        client.close(timeout=5)


def _end(cluster: Any) -> None:
    """End the workers at once, whatever they are about: what is done has been written."""
    for nanny in cluster.workers.values():
        with suppress(OSError, TypeError):  # it has ended by itself
            os.kill(nanny.pid, signal.SIGKILL)
    with suppress(Exception):
        cluster.close(timeout=5)
