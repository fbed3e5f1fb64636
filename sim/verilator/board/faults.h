// What becomes of a byte or packet on a bad line: the same for the same seed, unit by unit.
#pragma once

#include <cstdint>

#include "carrier.h"

class Faults {
public:
    enum Kind { NONE, LOST, ADDED, FLIPPED, DELAYED, DUPLICATED };

    Faults(const Options& options, uint64_t direction, Status& status)
        : rate_(options.faults), state_(2 * options.seed + direction), counts_(&status.lost) {}

    // The fate of the next unit: NONE, or each of the others equally often.
    Kind next() {
        if (rate_ <= 0 || random() >= rate_ * 18446744073709551616.0) return NONE;
        const uint64_t kind = random() % 5;
        counts_[kind]++;
        return static_cast<Kind>(kind + 1);
    }

    // SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
    uint64_t random() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

private:
    double rate_;
    uint64_t state_;
    uint64_t* counts_;  // of each kind
};
