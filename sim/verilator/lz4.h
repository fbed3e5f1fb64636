// What Verilator's FST writer asks of the LZ4 library, whose headers few machines have: one block, in LZ4's block format.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

// A run of literals and, unless it is the last, a match of at least 4 bytes `offset` back. Lengths of 15 and more go on
// in bytes that are added up, of which only the last is less than 255.
inline uint8_t* lz4_sequence(uint8_t* to, const uint8_t* literals, size_t count, size_t offset, size_t match) {
    uint8_t* const token = to++;
    const auto length = [&to](size_t value) {
        if (value < 15) return value;
        for (value -= 15; value >= 255; value -= 255) *to++ = 255;
        *to++ = static_cast<uint8_t>(value);
        return size_t{15};
    };
    *token = static_cast<uint8_t>(length(count) << 4);
    if (count) memcpy(to, literals, count);
    to += count;
    if (match == 0) return to;
    *to++ = static_cast<uint8_t>(offset);
    *to++ = static_cast<uint8_t>(offset >> 8);
    *token |= static_cast<uint8_t>(length(match - 4));
    return to;
}

// Greedy: each four bytes are looked for where the same hash was last. The format wants the last five bytes to be
// literals, and no match to begin among the last twelve.
inline int LZ4_compress_default(const char* source, char* target, int size, int) {
    const auto from = reinterpret_cast<const uint8_t*>(source);
    const auto begin = reinterpret_cast<uint8_t*>(target);
    const size_t end = static_cast<size_t>(size);
    uint8_t* to = begin;
    std::vector<size_t> seen(1 << 13, 0);  // position + 1
    size_t literals = 0, at = 0;
    while (at + 12 < end) {
        uint32_t word;
        memcpy(&word, from + at, 4);
        size_t& last = seen[word * 2654435761u >> 19];
        const size_t before = last;
        last = at + 1;
        if (before == 0 || at + 1 - before > 65535 || memcmp(from + before - 1, from + at, 4) != 0) {
            at++;
            continue;
        }
        size_t match = 4;
        while (at + match < end - 5 && from[before - 1 + match] == from[at + match]) match++;
        to = lz4_sequence(to, from + literals, at - literals, at + 1 - before, match);
        literals = at += match;
    }
    return static_cast<int>(lz4_sequence(to, from + literals, end - literals, 0, 0) - begin);
}
