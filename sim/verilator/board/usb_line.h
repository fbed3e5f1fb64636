// Packets on the two lines of full-speed USB, as USB 2.0 has them in 7.1 and 8.3: called once a cycle of 48 MHz, four a
// bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "Vboard.h"

using Bytes = std::vector<uint8_t>;

inline uint16_t crc_of(const uint8_t* bits, size_t count, uint16_t polynomial, int width) {
    const uint16_t mask = static_cast<uint16_t>((1u << width) - 1);
    uint16_t crc = mask;
    for (size_t i = 0; i < count; i++) {  // the lowest bit of a byte first; polynomial and remainder reflected
        const bool bit = (bits[i / 8] >> (i % 8)) & 1;
        const bool feedback = bit != (crc & 1);
        crc = static_cast<uint16_t>((crc >> 1) ^ (feedback ? polynomial : 0));
    }
    return crc ^ mask;
}
inline uint16_t crc5(const uint8_t* bits) { return crc_of(bits, 11, 0x14, 5); }
inline uint16_t crc16(const uint8_t* bytes, size_t size) { return crc_of(bytes, 8 * size, 0xa001, 16); }

class UsbLine {
public:
    static const int CYCLES = 4;  // a bit

    // Send a packet (its PID first, its CRC last) after `gap` bits. `flip`: a bit of it to invert, counted from the PID's;
    // -1: none.
    void send(const Bytes& packet, int gap, int flip = -1) {
        wait_ = gap * CYCLES;
        states_.clear();
        uint8_t state = J;
        int ones = 0;
        const auto bit = [&](bool one) {
            if (!one) state ^= J ^ K;
            states_.push_back(state);
            ones = one ? ones + 1 : 0;
        };
        for (int i = 0; i < 7; i++) bit(false);
        bit(true);
        for (size_t i = 0; i < 8 * packet.size(); i++) {
            bit(((packet[i / 8] >> (i % 8)) & 1) != (static_cast<int>(i) == flip));
            if (ones == 6) bit(false);
        }
        for (const uint8_t end : {SE0, SE0, J}) states_.push_back(end);
        forget();
    }

    // Keep both lines low for so many cycles.
    void send_reset(int cycles) {
        wait_ = 0;
        states_.assign(static_cast<size_t>(cycles / CYCLES), SE0);
        forget();
    }

    bool sending() const { return wait_ || !states_.empty(); }
    bool receiving() const { return bits_ >= 0; }
    // Cycles since the last packet was sent.
    int silence() const { return silence_; }

    // Whether a packet has ended: `bytes`, empty if it was damaged.
    bool received(Bytes& bytes) {
        if (!arrived_) return false;
        arrived_ = false;
        bytes = broken_ || bits_seen_ % 8 ? Bytes() : bytes_;
        return true;
    }

    // Before each rising edge of the clock.
    void cycle(Vboard& board) {
        const uint8_t seen = static_cast<uint8_t>(board.usb_d_p | board.usb_d_n << 1);
        if (wait_) wait_--;
        else if (!states_.empty()) {
            drive(board, true, states_.front());
            if (++phase_ == CYCLES) phase_ = 0, states_.pop_front();
            silence_ = 0;
            was_ = J;
            return;
        }
        drive(board, false, J);
        silence_++;
        if (!wait_) look(seen);
    }

    void idle(Vboard& board) const { drive(board, false, J); }

private:
    enum State : uint8_t { SE0 = 0, J = 1, K = 2 };  // D+ is bit 0, D- bit 1

    static void drive(Vboard& board, bool driven, uint8_t state) {
        board.usb_d_p_driven = board.usb_d_n_driven = driven;
        board.usb_d_p_host = state & 1;
        board.usb_d_n_host = state >> 1;
    }

    void forget() {
        phase_ = 0;
        bits_ = -1;
        arrived_ = false;
    }

    // Sample the board's bits in their middle; each change of the lines says anew where that is.
    void look(uint8_t seen) {
        if (bits_ < 0) {
            if (seen != K || was_ != J) {
                was_ = seen;
                return;
            }
            bits_ = 0;
            bytes_.clear();
            bits_seen_ = 0;
            broken_ = ended_ = synchronised_ = false;
            sampled_ = J;
            ones_ = 0;
            sample_ = 0;
        }
        sample_ = seen != was_ ? 0 : (sample_ + 1) % CYCLES;
        was_ = seen;
        if (sample_ != CYCLES / 2) return;
        if (seen == SE0) {
            ended_ = true;
            return;
        }
        if (ended_) {  // J behind SE0
            arrived_ = true;
            broken_ |= !synchronised_;
            bits_ = -1;
            silence_ = 0;
            return;
        }
        const bool one = seen == sampled_;
        sampled_ = seen;
        if (++bits_ > 10'000) broken_ = true;
        if (!synchronised_) {
            synchronised_ = one;
            ones_ = one;
            return;
        }
        if (ones_ == 6) {  // a stuffed bit
            broken_ |= one;
            ones_ = 0;
            return;
        }
        ones_ = one ? ones_ + 1 : 0;
        if (bits_seen_ % 8 == 0) bytes_.push_back(0);
        bytes_.back() = static_cast<uint8_t>(bytes_.back() | one << (bits_seen_ % 8));
        bits_seen_++;
    }

    // to the board
    int wait_ = 0, phase_ = 0;  // cycles
    std::deque<uint8_t> states_;
    // from the board
    int bits_ = -1;  // -1: none
    int silence_ = 0, sample_ = 0, ones_ = 0, bits_seen_ = 0;
    uint8_t was_ = J, sampled_ = J;
    bool arrived_ = false, broken_ = false, ended_ = false, synchronised_ = false;
    Bytes bytes_;
};
