// A serial line (8 data bits, the lowest first, no parity, 1 stop bit) between the board's pins and a pseudo-terminal.
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <deque>

#include "carrier.h"
#include "faults.h"
#include "settings.h"
#include "terminal.h"

static const double BIT = CLOCK_HZ / BAUD;  // cycles
static const size_t QUEUED = 512;           // bytes of the host's that an adapter takes before it lets it wait
static const size_t UNREAD = 1 << 20;       // bytes for a host that does not read; what follows is lost
static const int LONGEST_DELAY = 100;       // bytes' time

class Serial : public Carrier {
public:
    Serial(const Options& options, Status& status)
        : status_(status), to_board_faults_(options, 0, status), to_host_faults_(options, 1, status) {}

    std::string address() const override { return terminal_.address(); }
    int descriptor() const override { return terminal_.descriptor(); }
    uint64_t pace() const override { return static_cast<uint64_t>(40 * BIT); }
    bool busy() const override { return bit_ < 10 || receiving_ || !to_board_.empty() || !to_host_.empty(); }

    void reset(Vboard& board) override {
        receiving_ = false;
        board.uart_rx = 1;
    }

    void exchange(uint64_t now) override {
        uint8_t bytes[QUEUED];
        if (to_board_.size() < QUEUED) {
            const ssize_t n = read(terminal_.descriptor(), bytes, QUEUED - to_board_.size());
            for (ssize_t i = 0; i < n; i++) to_board_.push_back({bytes[i], 0});
            if (n > 0) status_.to_board += static_cast<uint64_t>(n);
        }
        while (!to_host_.empty() && to_host_.front().due <= now) {
            size_t n = 0;
            while (n < QUEUED && n < to_host_.size() && to_host_[n].due <= now) bytes[n] = to_host_[n].byte, n++;
            const ssize_t written = write(terminal_.descriptor(), bytes, n);
            if (written <= 0) break;  // the host does not read
            to_host_.erase(to_host_.begin(), to_host_.begin() + written);
        }
    }

    void cycle(Vboard& board, uint64_t now) override {
        if (now >= edge_) send(board, now);
        if (!receiving_) {
            if (!board.uart_tx) receiving_ = true, sampled_ = 0, sample_ = now + 0.5 * BIT;
        } else if (now >= sample_) receive(board, now);
    }

private:
    struct Byte {
        uint8_t byte;
        uint64_t due;  // cycle before which it must not be passed on
    };

    // Drive the next bit: 0 is the start bit, 9 the stop bit, 10 an idle line.
    void send(Vboard& board, uint64_t now) {
        if (bit_ < 9) {
            bit_++;
            board.uart_rx = bit_ == 9 ? 1 : (sending_ >> (bit_ - 1)) & 1;
            edge_ += BIT;
            return;
        }
        if (bit_ == 10) edge_ = static_cast<double>(now);
        bit_ = 10;
        if (repeat_) repeat_ = false;
        else if (!next(now)) return;
        bit_ = 0;
        board.uart_rx = 0;
        edge_ += BIT;
    }

    // Choose the byte to send, with what is wrong with it; false: none now.
    bool next(uint64_t now) {
        while (!to_board_.empty()) {
            Byte& front = to_board_.front();
            if (front.due > now) return false;
            sending_ = front.byte;
            if (front.due == 0) {
                switch (to_board_faults_.next()) {
                    case Faults::NONE: break;
                    case Faults::LOST: to_board_.pop_front(); continue;
                    case Faults::ADDED:
                        sending_ = static_cast<uint8_t>(to_board_faults_.random());
                        front.due = 1;  // its fate is known
                        return true;
                    case Faults::FLIPPED: sending_ ^= static_cast<uint8_t>(1 << to_board_faults_.random() % 8); break;
                    case Faults::DELAYED: front.due = now + delay(to_board_faults_); return false;
                    case Faults::DUPLICATED: repeat_ = true; break;
                }
            }
            to_board_.pop_front();
            return true;
        }
        return false;
    }

    void receive(Vboard& board, uint64_t now) {
        const bool level = board.uart_tx;
        if (sampled_ == 0 && level) {  // too short for a start bit
            receiving_ = false;
            return;
        }
        if (sampled_ == 9) {
            if (!level) {  // until the line is idle again
                broken_ = true;
                return;
            }
            receiving_ = false;
            if (broken_) status_.framing++;
            else arrived(now);
            broken_ = false;
            return;
        }
        received_ = static_cast<uint8_t>(received_ >> 1 | level << 7);
        sampled_++;
        sample_ += BIT;
    }

    void arrived(uint64_t now) {
        status_.to_host++;
        if (to_host_.size() >= UNREAD) return;
        const auto pass = [&](uint8_t byte) { to_host_.push_back({byte, due_}); };
        switch (to_host_faults_.next()) {
            case Faults::NONE: pass(received_); break;
            case Faults::LOST: break;
            case Faults::ADDED:
                pass(static_cast<uint8_t>(to_host_faults_.random()));
                pass(received_);
                break;
            case Faults::FLIPPED: pass(received_ ^ static_cast<uint8_t>(1 << to_host_faults_.random() % 8)); break;
            case Faults::DELAYED:
                due_ = now + delay(to_host_faults_);  // and all that follows
                pass(received_);
                break;
            case Faults::DUPLICATED:
                pass(received_);
                pass(received_);
                break;
        }
    }

    static uint64_t delay(Faults& faults) {
        return static_cast<uint64_t>(10 * BIT * static_cast<double>(1 + faults.random() % LONGEST_DELAY));
    }

    Status& status_;
    Faults to_board_faults_, to_host_faults_;
    Terminal terminal_;
    std::deque<Byte> to_board_, to_host_;
    uint64_t due_ = 0;
    // to the board
    int bit_ = 10;
    uint8_t sending_ = 0;
    bool repeat_ = false;
    double edge_ = 0;  // cycle of the next one
    // from the board
    bool receiving_ = false, broken_ = false;
    int sampled_ = 0;
    uint8_t received_ = 0;
    double sample_ = 0;
};

std::unique_ptr<Carrier> open_carrier(const Options& options, Status& status) {
    return std::make_unique<Serial>(options, status);
}
