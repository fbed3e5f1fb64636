"""Locate, verify and read the external files that hold data of a model's tensors.

A model is untrusted input that names files to read: nothing outside its folder is read, and no link is followed, unless
the user trusts the folder that holds the data. Nothing is allocated beyond a file's size; a file is read only for the
bytes of a tensor, or whole where its digest is given.

By hand: onnx.external_data_helper (1.23) reads all that a model asks for and raises at the first that is wrong.

Sources: onnx.proto (TensorProto.external_data); IR.md, "External Tensor Data".
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from hwflow.display import show
from hwflow.errors import Severity

KEYS = ("location", "offset", "length", "checksum")
_CLAUSE_OF_KEY = {"location": "EXT-02", "offset": "EXT-04", "length": "EXT-04", "checksum": "EXT-05"}

_PLACE = "put the file where the model says, relative to the model file"
_TRUST = "put the file itself into the model's folder, or allow the folder that it lies in with --trust"
_AGAIN = "save the model again with its external data"

_NUMBER = re.compile(r"[0-9]+")
_DIGEST = re.compile(r"[0-9a-fA-F]{40}")
_CHUNK = 1 << 20  # bytes read at once for a digest
_LONGEST = 4096  # characters of a location: systems take no longer paths
# A sparse file may have any size at no cost: hashing it would take forever.
_SPARSE, _SPARSE_RATIO, _BLOCK = 1 << 30, 64, 512
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of one tensor's external data: a finding without its place."""

    clause: str
    message: str
    remedy: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Reference:
    """The entries of a tensor's ``external_data``; of a repeated key the last value.

    ``offset`` and ``length`` are in bytes. None: absent, or invalid. ``problems``: all faults of the entries.
    """

    location: str | None
    offset: int | None
    length: int | None
    checksum: str | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A regular file that may be read. ``size`` in bytes."""

    path: str
    size: int


def _number(key: str, text: str, problems: list[Problem]) -> int | None:
    if _NUMBER.fullmatch(text):
        digits = text.lstrip("0")
        if len(digits) <= 19:
            return int(digits or "0")
        found = f"not a number of {len(digits)} digits"
    elif _NUMBER.fullmatch(text[1:]) and text[0] == "-":
        found = f"not negative ({text[:30]})"
    else:
        found = f"not {show(text)}"
    problems.append(Problem("EXT-04", f"{key} must be a number of bytes, {found}", _AGAIN))
    return None


def read_reference(tensor: onnx.TensorProto) -> Reference:
    """Read the entries of ``tensor.external_data``."""
    given: dict[str, list[str]] = {key: [] for key in KEYS}
    problems: list[Problem] = []
    for entry in tensor.external_data:
        if entry.key in given:
            given[entry.key].append(entry.value)
        else:
            message = f"keys of external_data must be {', '.join(KEYS)}, not {show(entry.key)}"
            problems.append(Problem("EXT-04", message, "nothing reads it: leave it out", Severity.WARNING))
    for key, texts in given.items():
        if len(texts) < 2:
            continue
        first, other = texts[0], next((text for text in texts if text != texts[0]), None)
        if other is None:
            message = f"external_data must give {key} once, not {len(texts)} times"
            problems.append(Problem(_CLAUSE_OF_KEY[key], message, "leave out all but one", Severity.WARNING))
        else:
            message = f"external_data must give one {key}, not {show(first)} and {show(other)}"
            problems.append(Problem(_CLAUSE_OF_KEY[key], message, _AGAIN))
    location, offset, length, checksum = (texts[-1] if texts else None for texts in given.values())
    if location is None:
        problems.append(Problem("EXT-02", "external_data must give a location, but it has none", _AGAIN))
    elif not location or "\0" in location:
        what = "holds a NUL character" if location else "is empty"
        problems.append(Problem("EXT-02", f"location must be the path of a file, but it {what}", _AGAIN))
        location = None
    if checksum is not None and not _DIGEST.fullmatch(checksum):
        message = f"checksum must be a SHA1 digest of 40 hexadecimal digits, not {show(checksum)}"
        problems.append(Problem("EXT-05", message, _AGAIN))
        checksum = None
    return Reference(
        location,
        0 if offset is None else _number("offset", offset, problems),
        None if length is None else _number("length", length, problems),
        checksum,
        tuple(problems),
    )


class ExternalFiles:
    """The files that may hold external data of one model.

    ``folder`` is the model's; None if unknown: files are not examined then. Data may also lie in the ``trusted``
    folders, and links may lead there.
    """

    def __init__(self, folder: Path | None, trusted: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.folder = folder
        self._trusted = [os.path.realpath(path) for path in trusted]
        self._found: dict[str, File | Problem | None] = {}
        self._digests: dict[str, str] = {}

    def find(self, location: str) -> File | Problem | None:
        """Return the file at ``location``, or why it is refused; None if unknown without the model's folder."""
        if location not in self._found:
            try:
                self._found[location] = self._find(location)
            except (OSError, ValueError) as error:  # ValueError: a name that the system cannot represent
                self._found[location] = _unreadable(location, error)
        return self._found[location]

    def _find(self, location: str) -> File | Problem | None:
        shown = show(location)
        if len(location) > _LONGEST:
            message = f"location must have at most {_LONGEST} characters, not {len(location)}: {shown}"
            return Problem("EXT-02", message, _AGAIN)
        folder = self.folder
        objection = ""
        kept: list[str] = []
        if location.startswith("/"):
            objection = f"location must be relative to the model's folder, not the absolute path {shown}"
        else:
            for part in location.split("/"):
                if part == "..":
                    if not kept:
                        objection = f"location must stay inside the model's folder, but {shown} leaves it"
                        break
                    kept.pop()
                elif part not in ("", "."):
                    kept.append(part)
                    if folder is not None and os.path.islink(os.path.join(folder, *kept)):
                        link = show("/".join(kept))
                        objection = f"external data must not lie behind a link, but {link} is a symbolic link"
                        break
        if folder is None:
            return _refused(objection) if objection and not self._trusted else None
        # Names inside the folder are resolved lexically: "a/../b" is "b" whether or not "a" exists.
        path = os.path.realpath(os.path.join(folder, location)) if objection else os.path.join(folder, *kept)
        if objection and not self._trusts(path):
            return _refused(objection)
        try:
            status = os.stat(path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return Problem("EXT-02", f"file {shown} must exist, but there is no such file", _PLACE)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
            return Problem("EXT-02", f"{shown} must be a regular file, not {kind}", _PLACE)
        if status.st_nlink > 1 and not self._trusts(os.path.realpath(path)):
            names = status.st_nlink
            message = f"external data must not lie behind a link, but file {shown} has {names} names (hard links)"
            return _refused(message)
        if not os.access(path, os.R_OK):
            return Problem("EXT-02", f"file {shown} must be readable, but it is not", "check its permissions")
        stored = getattr(status, "st_blocks", None)  # Windows has none
        if stored is not None and status.st_size > max(_SPARSE, _SPARSE_RATIO * _BLOCK * stored):
            message = f"file {shown} must hold its data, but of its {status.st_size} bytes {_BLOCK * stored} are stored"
            return Problem("EXT-02", message, "copy or download the file again")
        return File(path, status.st_size)

    def _trusts(self, path: str) -> bool:
        """Tell whether ``path``, without links, lies in a trusted folder."""
        return any(os.path.commonpath((folder, path)) == folder for folder in self._trusted)

    def read(self, file: File, offset: int, length: int) -> bytes:
        """Read ``length`` bytes from ``offset``. Raises OSError, also if the file is shorter."""
        with self._open(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            if offset + length > size:  # before anything is allocated
                raise OSError(0, f"it has only {size} bytes")
            stream.seek(offset)
            data = stream.read(length)
        if len(data) != length:  # uncovered: another process cuts it after its size was read
            raise OSError(0, "it became shorter while it was read")
        return data

    def sha1(self, file: File) -> str:
        """Return the file's SHA1 digest in lower case; computed once. Raises OSError."""
        if file.path not in self._digests:
            digest = hashlib.sha1(usedforsecurity=False)
            with self._open(file) as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
            self._digests[file.path] = digest.hexdigest()
        return self._digests[file.path]

    @staticmethod
    def _open(file: File) -> io.BufferedReader:
        # Do not follow a link or wait for a writer if the file was replaced by a link or a FIFO.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(file.path, flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(0, "it is no longer a regular file")
        return open(descriptor, "rb")


def _refused(message: str) -> Problem:
    return Problem("EXT-02", message, _TRUST)


def _unreadable(location: str, error: Exception) -> Problem:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return Problem("EXT-02", f"file {show(location)} must be readable, but: {reason}", "check the file")


@dataclass(frozen=True, slots=True)
class Need:
    """The bytes that a tensor needs by its element type and shape. ``text`` describes them."""

    size: int
    text: str


def verify(reference: Reference, need: Need | None, files: ExternalFiles) -> list[Problem]:
    """Return all faults of ``reference`` and its file. ``need`` is None where type or shape are unknown."""
    problems = list(reference.problems)
    length = reference.length
    if need is not None and length is not None and length != need.size:
        message = f"length must be the {need.size} bytes of {need.text}, not {length}"
        problems.append(Problem("EXT-04", message, _AGAIN))
    if reference.location is None:
        return problems
    file = files.find(reference.location)
    if isinstance(file, Problem):
        problems.append(file)
    elif file is not None:
        problems.extend(_verify_file(reference, need, files, file))
    return problems


def _verify_file(reference: Reference, need: Need | None, files: ExternalFiles, file: File) -> list[Problem]:
    assert reference.location is not None  # there would be no file
    shown = show(reference.location)
    problems: list[Problem] = []
    length = reference.length if reference.length is not None else need.size if need is not None else 0
    if reference.offset is not None and reference.offset + length > file.size:
        message = (
            f"file {shown} must have at least {reference.offset + length} bytes "
            f"(offset {reference.offset}, length {length}), but it has {file.size}"
        )
        # The file is too short, or the numbers are wrong: both clauses apply.
        problems += [Problem("EXT-02", message, _PLACE), Problem("EXT-04", message, _PLACE)]
    if reference.checksum is not None:
        try:
            digest = files.sha1(file)
        except OSError as error:
            return [*problems, _unreadable(reference.location, error)]
        if digest != reference.checksum.lower():
            message = f"file {shown} must have the SHA1 digest {reference.checksum.lower()}, but it has {digest}"
            problems.append(Problem("EXT-05", message, "copy or download the file again"))
    return problems


def fetch(reference: Reference, size: int, files: ExternalFiles) -> bytes | None:
    """Return the ``size`` bytes of a tensor; None if unavailable (:func:`verify` reports why)."""
    file = files.find(reference.location) if reference.location is not None else None
    if not isinstance(file, File) or reference.offset is None:
        return None
    try:
        return files.read(file, reference.offset, size)
    except OSError:
        return None
