"""The output folder of ``synth``: locked by one process, replaced atomically.

Meanwhile ``.OUT.hwflow`` stands beside a folder OUT: with ``lock``, which this process holds until it ends, however it
ends; with ``new``, in which the next OUT is made; and for a moment with ``old``, the one before. What a killed process
leaves of it, the next one removes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hwflow.display import show_path
from hwflow.errors import Finding, HwflowError, ToolError, UsageError
from hwflow.sim.programs import uninterrupted
from hwflow.toolchain.tool import FULL

_SUFFIX = ".hwflow"
_MADE_BY_HWFLOW = "manifest.json"
_PARTS = {"lock", "new", "old"}
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)  # of a file system that has none
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_TRIES, _PAUSE = 20, 0.05  # seconds: somebody may be about to remove the folder of the lock


@dataclass(frozen=True)
class Output:
    """A folder locked for this process; ``path`` is no link."""

    path: Path
    beside: Path

    @contextmanager
    def replaced(self) -> Iterator[Path]:
        """Yield a new folder that replaces this one if the body succeeds, and is removed otherwise."""
        new, old = self.beside / "new", self.beside / "old"
        try:
            new.mkdir()
            with room_in(new, self.path):
                yield new
            with uninterrupted(), ExitStack() as back:
                if self.path.exists():
                    self.path.rename(old)
                    back.callback(old.rename, self.path)
                new.rename(self.path)
                back.pop_all()
        except HwflowError as error:  # nobody can read a log that is gone
            error.findings = tuple(_without_log(finding, new) for finding in error.findings)
            raise
        finally:
            for folder in (new, old):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def claimed(out: Path, marker: str = _MADE_BY_HWFLOW) -> Iterator[Output]:
    """Lock ``out``, or the target of that link, for this process. ``marker``: a file that says what made it.

    Raises :class:`UsageError` if it cannot be written, holds what hwflow did not make, or is locked by another process.
    """
    check_writable(out, marker)
    path = Path(os.path.realpath(out))
    made = [folder for folder in path.parents if not folder.exists()]
    beside = path.with_name(f".{path.name}{_SUFFIX}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        lock = _lock_in(beside, _TRIES)
    except OSError as error:
        raise _unwritable(out, f"the system says: {error.strerror or error}") from None
    if lock is None:
        raise _busy(out, beside)
    try:
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        with room_in(path, path):
            yield Output(path, beside)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        os.close(lock)
        for folder in made:
            with suppress(OSError):  # it has something in it now
                folder.rmdir()


@contextmanager
def room_in(folder: Path, named: Path) -> Iterator[None]:
    """Raise :class:`ToolError` if the disk is full when the body writes to ``folder``, which is called ``named``."""
    try:
        yield
    except (OSError, HwflowError) as error:
        if not _is_for_room(error, folder):
            raise
        written, free = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), _free(folder)
        message = (
            f"must have room for all that is written, at least {written + free + 1:,} bytes, not run full: "
            f"{written:,} were written, {free:,} are free"
        )
        remedy = "make room, or choose a folder of another disk with -o"
        raise ToolError.of("output-space", f"folder {show_path(named)}", message, remedy) from None


def check_writable(out: Path, marker: str = _MADE_BY_HWFLOW) -> None:
    """Raise :class:`UsageError` unless ``out`` can be made or replaced; leave nothing behind. ``marker``: as for
    :func:`claimed`."""
    try:
        _check_writable(out, marker)
    except OSError as error:
        raise _unwritable(out, f"the system says: {error.strerror or error}") from None


def _check_writable(out: Path, marker: str) -> None:
    path = Path(os.path.realpath(out))
    if path.is_symlink():
        raise _unwritable(out, "it is a link that leads to itself")
    if path.exists():
        if not path.is_dir():
            raise _unwritable(out, "it is a file")
        if os.path.ismount(path):
            raise _unwritable(out, "it is the root of a file system, which cannot be replaced")
        if any(path.iterdir()) and not (path / marker).is_file():
            raise UsageError.of(
                "output-folder", f"output {show_path(os.path.abspath(out))}",
                "must be a new, an empty or an earlier output folder, not one with other files",
                "choose another folder with -o",
            )
    above = path.parent
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise _unwritable(out, f"{show_path(above)} is a file")
    # what tells for sure, also root on a read-only or special file system
    os.rmdir(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=_SUFFIX, dir=above))


def _sweep(folder: Path) -> None:
    """Remove what ended processes left in ``folder``; restore an output that was being replaced."""
    for hidden in folder.glob(f".*{_SUFFIX}"):
        with suppress(OSError):  # somebody else's, or gone meanwhile
            if hidden.is_symlink() or hidden.stat().st_uid != os.geteuid() or not {*os.listdir(hidden)} <= _PARTS:
                continue
            lock = _lock_in(hidden, 1, without=False)
            if lock is None:
                continue
            out = folder / hidden.name[1 : -len(_SUFFIX)]
            with suppress(OSError):
                if not os.path.lexists(out):
                    (hidden / "old").rename(out)
            shutil.rmtree(hidden, ignore_errors=True)
            os.close(lock)


def _lock_in(folder: Path, tries: int, *, without: bool = True) -> int | None:
    """Return a descriptor that holds the lock of ``folder``, made if need be; None if another process has it.
    ``without``: go on without a lock where the file system has none."""
    for turn in range(tries):
        if turn:
            time.sleep(_PAUSE)
        folder.mkdir(exist_ok=True)
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # uncovered: another process has removed it meanwhile
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.stat(folder / "lock")):
                return lock
        except OSError as error:  # another one has it, or has removed it
            if error.errno in _NO_LOCKS and without:  # uncovered: a file system without locks
                return lock
        os.close(lock)
    return None


def _is_for_room(error: OSError | HwflowError, folder: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    if not isinstance(error, ToolError) or any(finding.rule == "output-space" for finding in error.findings):
        return False
    said = [line for finding in error.findings for line in (finding.message, *finding.output)]
    return _free(folder) < FULL or any(os.strerror(errno.ENOSPC) in line for line in said)


def _free(folder: Path) -> int:
    """Return the free bytes of its file system; the folder need not exist yet."""
    there = next(above for above in (folder, *folder.parents) if above.exists())
    return shutil.disk_usage(there).free


def _without_log(finding: Finding, folder: Path) -> Finding:
    before, said, after = finding.message.partition(f" (log: {folder}")
    if not said:
        return finding
    message = before + after.partition(")")[2]
    return Finding(finding.rule, finding.where, message, finding.remedy, finding.severity, finding.output)


def _busy(out: Path, beside: Path) -> UsageError:
    who = ""
    with suppress(OSError, ValueError):
        who = f" (process {int((beside / 'lock').read_text())})"
    return UsageError.of(
        "output-folder", f"output {show_path(os.path.abspath(out))}",
        f"must be written by one command at a time, not while another writes it{who}",
        "wait for its end, or choose another folder with -o",
    )


def _unwritable(out: Path, reason: str) -> UsageError:
    return UsageError.of(
        "output-folder", f"output {show_path(os.path.abspath(out))}",
        f"must be a folder that can be written, but {reason}", "choose another folder with -o",
    )
