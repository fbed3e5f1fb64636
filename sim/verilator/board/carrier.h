// What lies between the pins of a simulated board and a host: one class a carrier, in a file of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "Vboard.h"

// What a host may look at while the board runs: the file of --status, eight bytes each, in this order.
struct Status {
    uint64_t cycles;      // of the design's clock, those included in which the board slept
    uint64_t to_board;    // units (bytes, or packets) that the host sent
    uint64_t to_host;     // units that the board sent
    uint64_t lost, added, flipped, delayed, duplicated;  // units that --faults damaged, both ways
    uint64_t framing;     // units of the board's that were none: a wrong stop bit, a wrong frame
    uint64_t resets;      // SIGUSR1
};

struct Options {
    double faults = 0;  // share of the units that are damaged
    uint64_t seed = 0;
};

class Carrier {
public:
    virtual ~Carrier() = default;
    // What the host opens.
    virtual std::string address() const = 0;
    // Readable when the host has sent something.
    virtual int descriptor() const = 0;
    // Cycles between two calls of `exchange`.
    virtual uint64_t pace() const = 0;
    // Take what the host has sent, give it what it is due.
    virtual void exchange(uint64_t now) = 0;
    // Set the board's inputs, look at its outputs: before every rising edge of the design's clock.
    virtual void cycle(Vboard& board, uint64_t now) = 0;
    // The host knows the board: its port is there.
    virtual bool ready() const { return true; }
    // Something is on the line, or waits for it.
    virtual bool busy() const = 0;
    // The board is configured: set its inputs, and forget what its pins were about before.
    virtual void reset(Vboard& board) = 0;
};

std::unique_ptr<Carrier> open_carrier(const Options& options, Status& status);

[[noreturn]] void fail(const std::string& message);
