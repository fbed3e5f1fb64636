/* Send frames to a board and write the answers: the link protocol (docs/reference/protocol.md) in C.
 *
 *     cc -O2 -o frames frames.c && ./frames /dev/ttyUSB0 < frames.bin > answers.bin
 *
 * Bytes in and out are those of the design's beats, frame after frame (docs/reference/ports.md). */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { IDENTIFY = 1, OPEN = 3, DATA, RESEND, IDENTITY = 0x81, OPENED = 0x83, BOARD_DATA, DAMAGED, MOST = 1 << 17 };
static int port;
static uint32_t base, acked, next, limit, got; /* acked, next, limit: of our bytes; got: of the board's */

static uint32_t little(const uint8_t *from, int bytes) {
    uint32_t value = 0;
    while (bytes--) value = value << 8 | from[bytes];
    return value;
}
static void put(uint8_t *to, uint32_t value, int bytes) {
    for (; bytes--; value >>= 8) *to++ = value & 255;
}
static uint32_t crc32(const uint8_t *data, size_t size) {
    uint32_t value = ~0u;
    while (size--) {
        value ^= *data++;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xEDB88320 : 0);
    }
    return ~value;
}
static void send_packet(int kind, const uint8_t *payload, uint32_t size) {
    static uint8_t packet[MOST], coded[2 * MOST];
    packet[0] = (uint8_t)kind;
    put(packet + 1, base + next, 4), put(packet + 5, base + got, 4), put(packet + 9, 65535, 2);
    if (size) memcpy(packet + 11, payload, size);
    put(packet + 11 + size, crc32(packet, 11 + size), 4);
    size_t code = 0, end = 1; /* COBS: where the distance to the next zero will stand */
    for (uint32_t n = 0; n < 15 + size; n++) {
        if (packet[n]) coded[end++] = packet[n];
        if (!packet[n] || end - code == 255) coded[code] = (uint8_t)(end - code), code = end++;
    }
    coded[code] = (uint8_t)(end - code), coded[end++] = 0;
    for (size_t sent = 0; sent < end;) {
        ssize_t more = write(port, coded + sent, end - sent);
        if (more < 0) perror("write"), exit(3);
        sent += (size_t)more;
    }
}
/* The next packet within 0.1 s: its size, 0 if none came, -1 if it is damaged. */
static int receive(uint8_t *packet) {
    static uint8_t buffer[4096], coded[MOST];
    static ssize_t have, place;
    static int size;
    for (;;) {
        if (place == have) {
            struct pollfd ready = {port, POLLIN, 0};
            if (poll(&ready, 1, 100) <= 0) return 0;
            have = read(port, buffer, sizeof buffer), place = 0;
            if (have <= 0) fprintf(stderr, "the port vanished\n"), exit(3);
        }
        uint8_t byte = buffer[place++];
        if (byte) { if (size < MOST) coded[size++] = byte; continue; }
        if (!size) continue;
        int to = 0, whole = size < MOST, end = size;
        size = 0;
        for (int from = 0; from < end;) { /* COBS: a block, and a zero behind it unless it is the last or full */
            int code = coded[from], after = from + code;
            if (after > end) { whole = 0; break; }
            for (from++; from < after;) packet[to++] = coded[from++];
            if (code < 255 && after < end) packet[to++] = 0;
        }
        return whole && to >= 15 && crc32(packet, (size_t)to - 4) == little(packet + to - 4, 4) ? to : -1;
    }
}
static void ask(int kind, int answer, uint8_t *packet) { /* until it is answered, 5 seconds long */
    for (int tries = 0; tries < 50; tries++) {
        send_packet(kind, NULL, 0);
        for (int size; (size = receive(packet)) != 0;)
            if (size > 0 && packet[0] == answer && (kind != OPEN || little(packet + 1, 4) == base)) return;
    }
    fprintf(stderr, "the board must answer, not be silent\n"), exit(3);
}
static uint32_t frame_bytes(const uint8_t *streams, int count) {
    uint32_t sum = 0;
    for (; count--; streams += 6) sum += little(streams, 2) * little(streams + 2, 4);
    return sum;
}
int main(int count, char **arguments) {
    static uint8_t packet[MOST];
    struct termios mode;
    if (count != 2 || (port = open(arguments[1], O_RDWR | O_NOCTTY)) < 0 || tcgetattr(port, &mode))
        return fprintf(stderr, "usage: frames DEVICE < frames > answers\n"), 2;
    cfmakeraw(&mode), cfsetspeed(&mode, B1000000), tcsetattr(port, TCSANOW, &mode);
    srand((unsigned)time(NULL) ^ (unsigned)getpid());
    base = 1 + (uint32_t)rand();
    uint8_t *input = NULL; /* all frames */
    uint32_t total = 0, size;
    do input = realloc(input, total + MOST), total += size = (uint32_t)fread(input + total, 1, MOST, stdin);
    while (size);
    if (write(port, "", 1) != 1) return 3; /* the end of whatever was sent before */
    ask(IDENTIFY, IDENTITY, packet);
    const uint8_t *identity = packet + 11; /* its bytes 0, 44, 46, 54 to 56: see "Identity" */
    if (identity[0] != 1) return fprintf(stderr, "the protocol must be version 1, not %d\n", identity[0]), 3;
    uint32_t most = little(identity + 44, 2), into = frame_bytes(identity + 56, identity[54]);
    uint32_t wanted = total / into * frame_bytes(identity + 56 + 6 * identity[54], identity[55]);
    total -= total % into, limit = little(identity + 46, 4);
    ask(OPEN, OPENED, packet);
    uint32_t went_back = ~0u, asked = ~0u, silent = 0; /* where that was done already: once, until time is up */
    while (got < wanted) {
        for (; next < total && next < limit; next += size) {
            size = limit - next < total - next ? limit - next : total - next;
            send_packet(DATA, input + next, size = size < most ? size : most);
        }
        int length = receive(packet), kind = packet[0], lost = length < 0;
        if (!length && ++silent == 100) return fprintf(stderr, "the board must answer, not be silent\n"), 3;
        if (!length) next = acked, went_back = asked = ~0u, lost = 1;
        if (length > 0) silent = 0;
        if (length > 0 && (kind == BOARD_DATA || kind == DAMAGED)) {
            uint32_t reached = little(packet + 5, 4) - base, begin = little(packet + 1, 4) - base;
            if (reached >= acked && reached <= total) acked = reached, limit = reached + little(packet + 9, 2);
            if (next < acked) next = acked;
            if (kind == DAMAGED && went_back != acked) next = went_back = acked;
            size = (uint32_t)length - 15;
            lost = (int32_t)(begin - got) > 0;
            if (!lost && size && (int32_t)(begin + size - got) > 0) {
                fwrite(packet + 11 + (got - begin), 1, begin + size - got, stdout), got = begin + size;
                if (next == total || next == limit) send_packet(DATA, NULL, 0); /* acknowledges */
            }
        }
        if (lost && asked != got) send_packet(RESEND, NULL, 0), asked = got;
    }
    return fflush(stdout) ? 3 : 0;
}
