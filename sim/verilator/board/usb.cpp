// A full-speed USB host with a driver for serial devices (USB 2.0, chapters 8 and 9; CDC 1.2) between the board's USB pins
// and a pseudo-terminal. It finds out what the device is as a host does, and stops where an answer is against the
// specification. Times that a host gives a device to come up are shorter here.
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <string>

#include "carrier.h"
#include "faults.h"
#include "terminal.h"
#include "usb_line.h"

static const uint64_t FRAME = 48'000;      // cycles: a millisecond
static const int RESET = 2'400;            // cycles; of a real host 10 ms
static const int GAP = 3;                  // bits between two packets of the host's
static const int PATIENCE = 18 * 4;        // cycles until an answer must have begun
static const size_t PACKET = 64;
static const size_t URB = 2 * PACKET;      // bytes that the driver asks for at once: passed on when full, or after a short packet
static const size_t QUEUED = 16 * 1280;    // bytes of a host's that wait: the requests of the Linux driver
static const size_t UNREAD = 1 << 20;      // bytes for a host that does not read: then none are fetched
static const uint64_t POLL = 4'800;        // cycles after a NAK until it is asked again, if something else is to be done
static const int TRIES = 3;                // damaged transactions, then the endpoint is halted
static const uint8_t ADDRESS = 5;

enum Pid : uint8_t {
    OUT = 0xe1, IN = 0x69, SOF = 0xa5, SETUP = 0x2d, DATA0 = 0xc3, DATA1 = 0x4b, ACK = 0xd2, NAK = 0x5a, STALL = 0x1e
};

// A control transfer; `expected`: what must come of it.
struct Request {
    enum Expected { DONE, STALLED, EITHER };
    uint8_t type, request;
    uint16_t value, index, length;
    Bytes data;  // to the device, or from it
    Expected expected;
    void (*then)(class Usb&, const Bytes&);
};

class Usb : public Carrier {
public:
    Usb(const Options& options, Status& status)
        : status_(status), to_board_faults_(options, 0, status), to_host_faults_(options, 1, status) {}

    std::string address() const override { return terminal_.address(); }
    int descriptor() const override { return terminal_.descriptor(); }
    uint64_t pace() const override { return 2'000; }
    bool ready() const override { return configured_; }

    bool busy() const override {
        return !configured_ || moved_ || !to_board_.empty() || !sent_.empty() || !to_host_.empty() || !requests_.empty();
    }

    void reset(Vboard& board) override {
        line_ = UsbLine();
        line_.idle(board);
        attached_ = configured_ = false;
        since_ = 0;
        step_ = FREE;
        requests_.clear();
        sent_.clear();
    }

    void exchange(uint64_t) override {
        moved_ = false;
        uint8_t bytes[QUEUED];
        if (to_board_.size() < QUEUED) {
            const ssize_t n = read(terminal_.descriptor(), bytes, QUEUED - to_board_.size());
            for (ssize_t i = 0; i < n; i++) to_board_.push_back(bytes[i]);
            if (n > 0) status_.to_board += static_cast<uint64_t>(n);
        }
        while (!to_host_.empty()) {
            size_t n = 0;
            while (n < QUEUED && n < to_host_.size()) bytes[n] = to_host_[n], n++;
            const ssize_t written = write(terminal_.descriptor(), bytes, n);
            if (written <= 0) break;  // the host does not read
            to_host_.erase(to_host_.begin(), to_host_.begin() + written);
        }
    }

    void cycle(Vboard& board, uint64_t) override {
        line_.cycle(board);
        if (!attached_) {
            if (!board.usb_pullup) since_ = 0;
            else if (++since_ == 1'000) attach();
            return;
        }
        time_++;
        if (time_ % FRAME == 0) sof_ = true;
        if (line_.sending()) return;
        if (step_ == FREE) begin();
        else advance();
    }

private:
    enum Step { FREE, TOKEN, DATA, ANSWER, HANDSHAKE, PAUSE };
    enum Result { ACKED, NAKED, STALLED, NOTHING };

    // --- transactions: token, data, handshake ---

    void send_token(uint8_t pid, uint16_t what) {
        uint8_t bits[2] = {static_cast<uint8_t>(what), static_cast<uint8_t>(what >> 8)};
        bits[1] = static_cast<uint8_t>(bits[1] | crc5(bits) << 3);
        transmit({pid, bits[0], bits[1]}, pid == SOF);
    }

    void transact(uint8_t pid, uint8_t endpoint, bool toggle, const Bytes& data = {}) {
        pid_ = pid;
        endpoint_ = endpoint;
        toggle_ = toggle;
        data_ = data;
        step_ = TOKEN;
        ignore_ = deaf_ = false;
        send_token(pid, static_cast<uint16_t>(device_ | endpoint << 7));
    }

    // Send a packet, with what is wrong with it. Only what carries the bytes of the terminal is damaged.
    void transmit(const Bytes& packet, bool spared = false) {
        int flip = -1;
        if (!spared && configured_ && endpoint_ == bulk_) {
            switch (to_board_faults_.next()) {
                case Faults::NONE: break;
                case Faults::LOST: return;
                case Faults::ADDED: line_.send({static_cast<uint8_t>(to_board_faults_.random()), packet[0]}, GAP); return;
                case Faults::FLIPPED: flip = static_cast<int>(to_board_faults_.random() % (8 * packet.size())); break;
                case Faults::DELAYED: pause_ = to_board_faults_.random() % FRAME; break;  // behind this transaction
                case Faults::DUPLICATED: ignore_ = true; break;  // its answer is lost, so it is sent again
            }
        }
        line_.send(packet, GAP, flip);
    }

    // What is wrong with a packet of the board's: whether it has arrived.
    bool arrives(Bytes& packet) {
        if (!configured_ || endpoint_ != bulk_) return true;
        switch (to_host_faults_.next()) {
            case Faults::NONE: return true;
            case Faults::LOST: return false;
            case Faults::ADDED: packet.push_back(0); return true;
            case Faults::FLIPPED:
                if (!packet.empty()) packet[to_host_faults_.random() % packet.size()] ^= 1 << to_host_faults_.random() % 8;
                return true;
            case Faults::DELAYED: pause_ = to_host_faults_.random() % FRAME; return true;
            case Faults::DUPLICATED: deaf_ = true; return true;  // no handshake leaves: the board sends it again
        }
        return true;
    }

    void advance() {
        switch (step_) {
            case TOKEN:
                if (pid_ == IN) step_ = ANSWER;
                else {
                    Bytes packet{static_cast<uint8_t>(toggle_ ? DATA1 : DATA0)};
                    packet.insert(packet.end(), data_.begin(), data_.end());
                    const uint16_t crc = crc16(data_.data(), data_.size());
                    packet.push_back(static_cast<uint8_t>(crc));
                    packet.push_back(static_cast<uint8_t>(crc >> 8));
                    transmit(packet);
                    step_ = DATA;
                }
                return;
            case DATA: step_ = ANSWER; return;
            case ANSWER: {
                Bytes packet;
                if (line_.received(packet)) answered(packet);
                else if (!line_.receiving() && line_.silence() > PATIENCE) finish(NOTHING);
                return;
            }
            case HANDSHAKE: finish(ACKED); return;
            case PAUSE:
                if (pause_) pause_--;
                else step_ = FREE;
                return;
            case FREE: return;
        }
    }

    void answered(Bytes& packet) {
        if (packet.empty()) status_.framing++;
        if (!arrives(packet) || ignore_ || packet.empty()) return finish(NOTHING);
        const uint8_t pid = packet[0];
        if (packet.size() == 1 && pid == NAK) return finish(NAKED);
        if (packet.size() == 1 && pid == STALL) return finish(STALLED);
        if (pid_ != IN) return finish(packet.size() == 1 && pid == ACK ? ACKED : NOTHING);
        const size_t size = packet.size() - 3;
        if ((pid != DATA0 && pid != DATA1) || packet.size() < 3 || size > PACKET) return finish(NOTHING);
        if (crc16(&packet[1], size) != (packet[size + 1] | packet[size + 2] << 8)) return finish(NOTHING);
        data_.assign(packet.begin() + 1, packet.begin() + 1 + static_cast<long>(size));
        fresh_ = (pid == DATA1) == toggle_;
        step_ = HANDSHAKE;
        if (deaf_) deaf_ = false;
        else transmit({ACK});
    }

    void finish(Result result) {
        step_ = pause_ ? PAUSE : FREE;
        if (pid_ == SOF) return;
        if (endpoint_ == 0) control(result);
        else if (endpoint_ == bulk_) bulk(result);
        else if (result != NAKED) fail("USB: the endpoint of notifications must answer NAK");
    }

    // Bits of a transaction with so many bytes, at the most.
    static uint64_t bits_of(size_t bytes) { return 35 + GAP + 35 + bytes * 8 * 7 / 6 + 20 + 20 + 2 * GAP; }

    void begin() {
        const uint64_t left = FRAME - time_ % FRAME;
        if (sof_) {
            sof_ = false;
            pid_ = SOF;
            step_ = HANDSHAKE;
            send_token(SOF, static_cast<uint16_t>(time_ / FRAME & 0x7ff));
        } else if (left < 4 * bits_of(PACKET) || wait_frames_ > time_ / FRAME) return;
        else if (!requests_.empty()) begin_control();
        else if (configured_) begin_bulk();
    }

    // --- control transfers ---

    void begin_control() {
        const Request& r = requests_.front();
        const bool in = r.type & 0x80;
        switch (stage_) {
            case 0: {
                const auto low = [](uint16_t word) { return static_cast<uint8_t>(word); };
                const auto high = [](uint16_t word) { return static_cast<uint8_t>(word >> 8); };
                transact(SETUP, 0, false, {r.type, r.request, low(r.value), high(r.value), low(r.index), high(r.index),
                                           low(r.length), high(r.length)});
                return;
            }
            case 1:
                if (in) transact(IN, 0, control_toggle_);
                else transact(OUT, 0, control_toggle_, r.data);
                return;
            case 2:
                if (in && r.length) transact(OUT, 0, true);
                else transact(IN, 0, true);
                return;
        }
    }

    void control(Result result) {
        Request& r = requests_.front();
        if (result == NAKED) return;
        if (result == NOTHING) {
            if (++errors_ == TRIES) fail("USB: a control transfer must be answered" + told(r));
            return;
        }
        errors_ = 0;
        if (result == STALLED) {
            if (r.expected == Request::DONE) fail("USB: a request must not be refused" + told(r));
            return end_control();
        }
        if (stage_ == 0) {
            control_toggle_ = true;
            stage_ = r.length ? 1 : 2;
        } else if (stage_ == 1) {
            if (r.type & 0x80) {
                if (!fresh_) return;
                r.data.insert(r.data.end(), data_.begin(), data_.end());
                control_toggle_ = !control_toggle_;
                if (r.data.size() > r.length) fail("USB: there must not be more data than asked for" + told(r));
                if (data_.size() == PACKET && r.data.size() < r.length) return;
            }
            stage_ = 2;
        } else {
            if (r.expected == Request::STALLED) fail("USB: a request must be refused" + told(r));
            if (pid_ == IN && (!data_.empty() || !fresh_)) fail("USB: a status must be an empty DATA1" + told(r));
            end_control();
        }
    }

    void end_control() {
        const Request r = requests_.front();
        requests_.pop_front();
        stage_ = 0;
        if (r.then) r.then(*this, r.data);
    }

    static std::string told(const Request& r) {
        char text[80];
        snprintf(text, sizeof text, " (type %02x, request %02x, value %04x)", r.type, r.request, r.value);
        return text;
    }

    void ask(uint8_t type, uint8_t request, uint16_t value, uint16_t index, uint16_t length, Bytes data = {},
             Request::Expected expected = Request::DONE, void (*then)(Usb&, const Bytes&) = nullptr) {
        requests_.push_back({type, request, value, index, length, data, expected, then});
    }

    void get_descriptor(uint16_t value, uint16_t index, uint16_t length, void (*then)(Usb&, const Bytes&)) {
        ask(0x80, 6, value, index, length, {}, then ? Request::DONE : Request::STALLED, then);
    }

    void reset_bus() {
        line_.send_reset(RESET);
        device_ = 0;
        wait_frames_ = time_ / FRAME + 2;
    }

    void attach() {
        attached_ = true;
        stage_ = errors_ = 0;
        reset_bus();
        // as the drivers of several systems ask: more of the device's descriptor than there is, then a reset
        get_descriptor(0x0100, 0, 64, [](Usb& usb, const Bytes& data) {
            if (data.size() != 18) fail("USB: the device's descriptor must have 18 bytes");
            usb.reset_bus();
            usb.ask(0x00, 5, ADDRESS, 0, 0, {}, Request::DONE, [](Usb& usb, const Bytes&) { usb.addressed(); });
        });
    }

    static void show(const char* what, const Bytes& data) {
        fprintf(stderr, "USB %s:", what);
        for (const uint8_t byte : data) fprintf(stderr, " %02x", byte);
        fprintf(stderr, "\n");
        fflush(stderr);
    }

    void addressed() {
        device_ = ADDRESS;
        wait_frames_ = time_ / FRAME + 2;
        get_descriptor(0x0100, 0, 18, [](Usb& usb, const Bytes& data) {
            if (data.size() != 18 || data[7] != PACKET) fail("USB: the device's descriptor must be one");
            show("device", data);
            usb.get_descriptor(0x0200, 0, 9, [](Usb& usb, const Bytes& data) {
                if (data.size() != 9) fail("USB: nine bytes of the configuration must come");
                const auto whole = static_cast<uint16_t>(data[2] | data[3] << 8);
                usb.get_descriptor(0x0200, 0, whole, [](Usb& usb, const Bytes& data) { usb.configure(data); });
            });
            usb.get_descriptor(0x0300, 0, 255, [](Usb&, const Bytes& data) { show("languages", data); });
            usb.get_descriptor(static_cast<uint16_t>(0x0300 | data[14]), 0x0409, 255,
                               [](Usb&, const Bytes& data) { show("manufacturer", data); });
            usb.get_descriptor(static_cast<uint16_t>(0x0300 | data[15]), 0x0409, 255,
                               [](Usb&, const Bytes& data) { show("product", data); });
            usb.get_descriptor(0x0600, 0, 10, nullptr);  // what it were at high speed: nothing
        });
    }

    void configure(const Bytes& data) {
        show("configuration", data);
        if (data.size() < 9 || data.size() != (data[2] | data[3] << 8)) fail("USB: the whole configuration must come");
        int in = 0, out = 0;
        for (size_t at = 0; at + 1 < data.size(); at += data[at]) {
            if (data[at] < 2 || at + data[at] > data.size()) fail("USB: a descriptor must end where it says");
            if (data[at + 1] != 5) continue;
            if ((data[at + 4] | data[at + 5] << 8) != static_cast<int>(PACKET)) fail("USB: packets must have 64 bytes");
            const uint8_t number = data[at + 2] & 15;
            if (data[at + 3] == 3) notifications_ = number;
            else (data[at + 2] & 0x80 ? in : out) = number;
        }
        if (!in || in != out || !notifications_) fail("USB: there must be two bulk endpoints of one number, and another");
        bulk_ = static_cast<uint8_t>(in);
        ask(0x00, 9, data[5], 0, 0);
        ask(0x80, 8, 0, 0, 1, {}, Request::DONE, [](Usb&, const Bytes& data) {
            if (data != Bytes{1}) fail("USB: the configuration must be set");
        });
        ask(0x80, 0, 0, 0, 2, {}, Request::DONE, [](Usb&, const Bytes& data) {
            if (data.size() != 2) fail("USB: a status must have two bytes");
        });
        ask(0x21, 0x20, 0, 0, 7, {0x00, 0xc2, 0x01, 0x00, 0, 0, 8});  // SET_LINE_CODING: 115,200 baud, 8 bits
        ask(0xc0, 0x77, 0, 0, 4, {}, Request::STALLED);               // a vendor's
        ask(0x21, 0x22, 3, 0, 0, {}, Request::EITHER, [](Usb& usb, const Bytes&) { usb.ready(); });  // DTR, RTS
    }

    void ready() {
        configured_ = true;
        in_toggle_ = out_toggle_ = false;
        first_ = true;
        in_errors_ = out_errors_ = 0;
        asked_ = 0;
        urb_.clear();
    }

    // --- the terminal's bytes ---

    void begin_bulk() {
        if (time_ / FRAME % 16 == 0 && notified_ != time_ / FRAME) {
            notified_ = time_ / FRAME;
            return transact(IN, notifications_, false);
        }
        if (sent_.empty() && !to_board_.empty()) {
            const size_t size = to_board_.size() < PACKET ? to_board_.size() : PACKET;
            sent_.assign(to_board_.begin(), to_board_.begin() + static_cast<long>(size));
            to_board_.erase(to_board_.begin(), to_board_.begin() + static_cast<long>(size));
        }
        const bool may_ask = to_host_.size() < UNREAD && (sent_.empty() || time_ >= asked_);
        if (may_ask && (sent_.empty() || !turn_)) transact(IN, bulk_, in_toggle_);
        else if (!sent_.empty()) transact(OUT, bulk_, out_toggle_, sent_);
        turn_ = pid_ == IN;
    }

    void bulk(Result result) {
        const bool in = pid_ == IN;
        int& errors = in ? in_errors_ : out_errors_;
        if (result == STALLED) fail("USB: a bulk endpoint must not be halted");
        if (result == NOTHING) {
            moved_ = true;
            if (++errors == TRIES) halt(in);
            return;
        }
        errors = 0;
        if (result == NAKED) {
            if (in) asked_ = time_ + POLL;
            return;
        }
        moved_ = true;
        if (!in) {
            out_toggle_ = !out_toggle_;
            sent_.clear();
        } else if (!fresh_ && first_) {
            fail("USB: the first packet of a configuration must be DATA0");
        } else if (fresh_) {
            first_ = false;
            in_toggle_ = !in_toggle_;
            status_.to_host += data_.size();
            urb_.insert(urb_.end(), data_.begin(), data_.end());
            if (data_.size() < PACKET || urb_.size() == URB) {
                to_host_.insert(to_host_.end(), urb_.begin(), urb_.end());
                urb_.clear();
            }
        }
    }

    // As drivers do after several errors: what was under way is lost, and the data toggles begin anew; every other time
    // the device is reset and asked again what it is.
    void halt(bool in) {
        if (++halts_ % 2 == 0) {
            configured_ = false;
            sent_.clear();
            return attach();
        }
        (in ? in_errors_ : out_errors_) = 0;
        (in ? in_toggle_ : out_toggle_) = false;
        (in ? urb_ : sent_).clear();
        ask(0x02, 1, 0, static_cast<uint16_t>(bulk_ | (in ? 0x80 : 0)), 0);
    }

    Status& status_;
    Faults to_board_faults_, to_host_faults_;
    Terminal terminal_;
    std::deque<uint8_t> to_board_, to_host_;
    UsbLine line_;
    uint64_t time_ = 0, wait_frames_ = 0, asked_ = 0, notified_ = 0, pause_ = 0;
    int since_ = 0;
    bool attached_ = false, configured_ = false, sof_ = false, moved_ = false, turn_ = false;
    // the transaction
    Step step_ = FREE;
    uint8_t pid_ = 0, endpoint_ = 0, device_ = 0;
    bool toggle_ = false, fresh_ = false, ignore_ = false, deaf_ = false;
    Bytes data_;
    // control
    std::deque<Request> requests_;
    int stage_ = 0, errors_ = 0;  // 0 setup, 1 data, 2 status
    bool control_toggle_ = true;
    // bulk
    uint8_t bulk_ = 0, notifications_ = 0;
    bool in_toggle_ = false, out_toggle_ = false;
    bool first_ = true;  // no packet has come yet
    int in_errors_ = 0, out_errors_ = 0, halts_ = 0;
    Bytes sent_, urb_;
};

std::unique_ptr<Carrier> open_carrier(const Options& options, Status& status) {
    return std::make_unique<Usb>(options, status);
}
