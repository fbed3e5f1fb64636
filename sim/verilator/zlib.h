// What Verilator's FST writer asks of zlib, whose headers not every machine has: a stream of stored blocks (RFC 1950 and
// 1951). The writer keeps what it gave where that is no longer than this, as it always is.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

typedef uint8_t Bytef;
typedef unsigned long uLong;
typedef unsigned long uLongf;
enum { Z_OK = 0 };

inline uLong compressBound(uLong size) { return size + 5 * (size / 65535 + 1) + 6; }

inline int compress2(Bytef* target, uLongf* target_size, const Bytef* source, uLong size, int) {
    Bytef* to = target;
    *to++ = 0x78;
    *to++ = 0x01;
    uLong done = 0;
    do {
        const uLong count = std::min<uLong>(size - done, 65535);
        *to++ = done + count == size;
        for (const uLong length : {count, ~count}) {
            *to++ = static_cast<Bytef>(length);
            *to++ = static_cast<Bytef>(length >> 8);
        }
        if (count) memcpy(to, source + done, count);
        to += count;
        done += count;
    } while (done < size);
    uint32_t low = 1, high = 0;  // Adler-32
    for (uLong i = 0; i < size; i++) {
        low = (low + source[i]) % 65521;
        high = (high + low) % 65521;
    }
    for (const uint32_t byte : {high >> 8, high, low >> 8, low}) *to++ = static_cast<Bytef>(byte);
    *target_size = static_cast<uLongf>(to - target);
    return Z_OK;
}
