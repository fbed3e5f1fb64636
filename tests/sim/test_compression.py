"""What stands in for LZ4 and zlib when Verilator writes an FST: other programs must read it."""

from __future__ import annotations

import random
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

HEADERS = Path(__file__).parents[2] / "sim" / "verilator"

# Its input, as a block of LZ4 in a file and as a stream of zlib in another.
PROGRAM = """
#include "lz4.h"
#include "zlib.h"
#include <fstream>
#include <iterator>
#include <string>
int main(int, char** names) {
    std::ifstream in(names[1], std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}}, block(LZ4_compressBound(text.size()), 0);
    std::string stream(compressBound(text.size()), 0);
    block.resize(LZ4_compress_default(text.data(), &block[0], text.size(), block.size()));
    uLongf size = stream.size();
    if (compress2((Bytef*)&stream[0], &size, (const Bytef*)text.data(), text.size(), 9) != Z_OK) return 1;
    std::ofstream(names[2], std::ios::binary) << block;
    std::ofstream(names[3], std::ios::binary) << stream.substr(0, size);
}
"""


def decompressed(block: bytes) -> bytes:
    """Of a block of LZ4, by the format's description; asserts that it ends as a block must."""
    out, at = bytearray(), 0
    matched = 0  # where the last match began

    def length(nibble: int) -> int:
        nonlocal at
        more = nibble == 15
        while more:
            nibble += block[at]
            more = block[at] == 255
            at += 1
        return nibble

    while True:
        token = block[at]
        at += 1
        count = length(token >> 4)
        out += block[at : at + count]
        at += count
        if at == len(block):
            assert not matched or (count >= 5 and len(out) - matched >= 12)
            return bytes(out)
        offset = int.from_bytes(block[at : at + 2], "little")
        at += 2
        matched = len(out)
        assert 0 < offset <= len(out)
        for _ in range(length(token & 15) + 4):
            out.append(out[-offset])


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compression")
    (folder / "main.cpp").write_text(PROGRAM)
    sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["c++", *sanitized, f"-I{HEADERS}", "main.cpp", "-o", "main"], cwd=folder, check=True)
    return folder / "main"


def texts() -> dict[str, bytes]:
    rng = random.Random(1)
    noise = rng.randbytes(70_000)
    return {
        **{f"{size} of noise": noise[:size] for size in (0, 1, 4, 14, 15, 16, 270, 271, 70_000)},
        **{f"{size} zeros": bytes(size) for size in (5, 12, 13, 17, 18, 19, 32, 287, 300, 66_000)},
        "words": b" ".join(rng.choice((b"valid", b"ready", b"last", b"data")) for _ in range(3000)),
        "far": noise[:200] + bytes(65_400) + noise[:200] + bytes(200) + noise[:200],
    }


@pytest.mark.parametrize("name", texts())
def test_others_read_it(program, tmp_path, name):
    text = texts()[name]
    files = [tmp_path / kind for kind in ("text", "lz4", "zlib")]
    files[0].write_bytes(text)
    subprocess.run([program, *files], check=True)
    block = files[1].read_bytes()
    assert decompressed(block) == text
    assert zlib.decompress(files[2].read_bytes()) == text
    if name in ("words", "66000 zeros"):
        assert len(block) < len(text) / 2


def fst_blocks(data: bytes) -> dict[int, bytes]:
    """Contents of an FST file's blocks by their kind: a byte, eight of length (which count themselves), the content."""
    blocks, at = {}, 0
    while at < len(data):
        (length,) = struct.unpack_from(">Q", data, at + 1)
        blocks[data[at]] = data[at + 9 : at + 1 + length]
        at += 1 + length
    assert at == len(data)
    return blocks


def hierarchy(data: bytes) -> bytes:
    """The names in an FST file whose hierarchy is a block of LZ4 (kind 6: its length, the block)."""
    content = fst_blocks(data)[6]
    text = decompressed(content[8:])
    assert len(text) == struct.unpack_from(">Q", content)[0]
    return text
