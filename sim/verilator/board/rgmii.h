// Gigabit Ethernet's frames at RGMII pins: half a byte on each edge of the clock, between preamble and gap.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "Vboard.h"
#include "carrier.h"

using Bytes = std::vector<uint8_t>;

// The check sequence over a frame with its own is CHECKED (IEEE 802.3, 3.2.9).
static const uint32_t CHECKED = 0x2144df1c;

inline uint32_t check_sequence(const Bytes& data) {
    uint32_t crc = 0xffffffff;
    for (const uint8_t byte : data) {
        crc ^= byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

class Rgmii {
public:
    explicit Rgmii(Status& status) : status_(status) {}

    // Queue a frame, without its check sequence; `damage`: a bit to change in it or in that, counted from 1.
    void send(Bytes frame, size_t damage = 0) {
        while (frame.size() < 60) frame.push_back(0);
        const uint32_t check = check_sequence(frame);
        for (int byte = 0; byte < 4; byte++) frame.push_back(static_cast<uint8_t>(check >> 8 * byte));
        if (damage) frame[(damage - 1) / 8 % frame.size()] ^= static_cast<uint8_t>(1 << (damage - 1) % 8);
        frame.insert(frame.begin(), {0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5});
        to_board_.push_back(std::move(frame));
    }

    // Frames of the board, whole, without their check sequences.
    std::deque<Bytes> received;

    size_t queued() const { return to_board_.size(); }
    bool busy() const { return !to_board_.empty() || gap_ || active_ || !received.empty(); }

    void reset(Vboard& board) {
        board.rgmii_rx_clk = board.rgmii_rx_ctl = board.rgmii_rx_data = 0;
        active_ = false;
        frame_.clear();
    }

    // A byte's time on the line, both ways.
    void cycle(Vboard& board) {
        int byte = -1;
        if (gap_) gap_--;
        else if (!to_board_.empty()) {
            const Bytes& frame = to_board_.front();
            byte = frame[sent_++];
            if (sent_ == frame.size()) {
                to_board_.pop_front();
                sent_ = 0;
                gap_ = 12;
            }
        }
        for (int half = 0; half < 2; half++) {
            board.rgmii_rx_ctl = byte >= 0;
            board.rgmii_rx_data = byte < 0 ? 0 : byte >> 4 * half & 15;
            board.rgmii_rx_clk = !half;
            board.eval();
            if (board.rgmii_tx_clk == clock_) continue;
            clock_ = board.rgmii_tx_clk;
            if (clock_) low_ = board.rgmii_tx_data, enabled_ = board.rgmii_tx_ctl;
            else take(static_cast<uint8_t>(board.rgmii_tx_data << 4 | low_), enabled_, board.rgmii_tx_ctl != enabled_);
        }
    }

private:
    // A byte from the board: whether it is of a frame, and whether the board calls it damaged.
    void take(uint8_t byte, bool enabled, bool error) {
        if (enabled) {
            active_ = true;
            broken_ |= error;
            frame_.push_back(byte);
            return;
        }
        if (!active_) return;
        active_ = false;
        size_t begin = 0;
        while (begin < frame_.size() && frame_[begin] == 0x55) begin++;
        const bool preamble = begin < frame_.size() && frame_[begin] == 0xd5;
        frame_.erase(frame_.begin(), frame_.begin() + static_cast<ptrdiff_t>(preamble ? begin + 1 : 0));
        if (!preamble || broken_ || frame_.size() < 64 || check_sequence(frame_) != CHECKED) status_.framing++;
        else {
            frame_.resize(frame_.size() - 4);
            received.push_back(std::move(frame_));
        }
        frame_.clear();
        broken_ = false;
    }

    Status& status_;
    std::deque<Bytes> to_board_;
    size_t sent_ = 0;  // bytes of the first of them
    int gap_ = 0;
    // from the board
    bool clock_ = false, enabled_ = false, active_ = false, broken_ = false;
    uint8_t low_ = 0;
    Bytes frame_;
};
