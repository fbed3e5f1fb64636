// Datagrams between the board's Ethernet pins and a UDP socket of this machine: a network with every host of this
// machine on it, at one address, and the board. ARP works as anywhere; a bad line (--faults) damages datagrams only.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "carrier.h"
#include "faults.h"
#include "rgmii.h"
#include "settings.h"

static const uint32_t HOST_ADDRESS = BOARD_ADDRESS ^ 1;
static const Bytes HOST_MAC = {0x02, 0x00, 0x00, 0x00, 0x00, 0x99}, EVERYONE(6, 0xff);
static const uint64_t PATIENCE = static_cast<uint64_t>(CLOCK_HZ / 1000);  // cycles that an answer to ARP may take
static const uint64_t LONGEST_DELAY = static_cast<uint64_t>(CLOCK_HZ / 10000);
static const size_t LONGEST = 1472;  // bytes of a datagram in one frame
static const int BUFFER = 1 << 22;   // bytes of the socket's

static void put(Bytes& to, uint64_t number, int size) {
    for (int byte = size - 1; byte >= 0; byte--) to.push_back(static_cast<uint8_t>(number >> 8 * byte));
}

static void put(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

static uint64_t get(const Bytes& from, size_t begin, int size) {
    uint64_t number = 0;
    for (int byte = 0; byte < size; byte++) number = number << 8 | from[begin + static_cast<size_t>(byte)];
    return number;
}

// The sum of RFC 1071 over an IPv4 header at `begin`: 0 if its checksum is right.
static uint16_t header_sum(const Bytes& from, size_t begin) {
    uint64_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += get(from, begin + i, 2);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
}

// `damage`: see Rgmii::send; to the host: it is lost.
struct Datagram {
    uint16_t port;  // the host's
    Bytes payload;
    size_t damage;
};

using Way = std::multimap<uint64_t, Datagram>;  // by the cycle from which on it may pass

class Udp : public Carrier {
public:
    Udp(const Options& options, Status& status)
        : status_(status), to_board_faults_(options, 0, status), to_host_faults_(options, 1, status), line_(status) {
        socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        sockaddr_in own = at(0);
        socklen_t size = sizeof own;
        if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&own), size) ||
            getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size))
            fail("no UDP socket can be opened");
        for (const int option : {SO_RCVBUF, SO_SNDBUF}) setsockopt(socket_, SOL_SOCKET, option, &BUFFER, sizeof BUFFER);
        address_ = "udp:127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    }

    std::string address() const override { return address_; }
    int descriptor() const override { return socket_; }
    uint64_t pace() const override { return 500; }
    bool busy() const override { return line_.busy() || !to_board_.empty() || !to_host_.empty(); }

    void reset(Vboard& board) override { line_.reset(board); }

    void exchange(uint64_t now) override {
        Bytes bytes(LONGEST + 1);
        sockaddr_in host;
        socklen_t size = sizeof host;
        for (ssize_t n; (n = recvfrom(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&host), &size)) >= 0;) {
            status_.to_board++;
            if (n > static_cast<ssize_t>(LONGEST)) continue;
            pass({ntohs(host.sin_port), Bytes(bytes.begin(), bytes.begin() + n), 0}, to_board_faults_, to_board_, now);
        }
        while (!to_host_.empty() && to_host_.begin()->first <= now) {
            const Datagram& datagram = to_host_.begin()->second;
            const sockaddr_in to = at(datagram.port);
            if (!datagram.damage)
                sendto(socket_, datagram.payload.data(), datagram.payload.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
            to_host_.erase(to_host_.begin());
        }
    }

    void cycle(Vboard& board, uint64_t now) override {
        if (!line_.queued() && !to_board_.empty() && to_board_.begin()->first <= now) send(now);
        for (line_cycles_ += LINE_HZ / CLOCK_HZ; line_cycles_ >= 1; line_cycles_--) line_.cycle(board);
        for (; !line_.received.empty(); line_.received.pop_front()) arrived(line_.received.front(), now);
    }

private:
    static sockaddr_in at(uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        return address;
    }

    // Give a datagram its fate. A delayed one is overtaken by others.
    static void pass(Datagram datagram, Faults& faults, Way& way, uint64_t now) {
        switch (faults.next()) {
            case Faults::NONE: break;
            case Faults::LOST: return;
            case Faults::ADDED: {
                Datagram stray{datagram.port, Bytes(faults.random() % LONGEST), 0};
                for (uint8_t& byte : stray.payload) byte = static_cast<uint8_t>(faults.random());
                way.emplace(now, std::move(stray));
                break;
            }
            case Faults::FLIPPED: {  // on the line, which the check sequence tells, or before
                const uint64_t bit = faults.random();
                if (bit & 1 || datagram.payload.empty()) datagram.damage = 1 + bit % (8 * LONGEST);
                else datagram.payload[bit / 16 % datagram.payload.size()] ^= static_cast<uint8_t>(1 << bit / 2 % 8);
                break;
            }
            case Faults::DELAYED: now += 1 + faults.random() % LONGEST_DELAY; break;
            case Faults::DUPLICATED: way.emplace(now, datagram); break;
        }
        way.emplace(now, std::move(datagram));
    }

    // Send the first datagram, or ask who has the board's address.
    void send(uint64_t now) {
        if (board_mac_.empty()) {
            if (!asked_) {
                asked_ = now + 1;
                arp(EVERYONE, 1, Bytes(6, 0));
            } else if (now > asked_ + PATIENCE) {  // nobody: as a host does, drop what was to be sent
                asked_ = 0;
                to_board_.clear();
            }
            return;
        }
        const Datagram& datagram = to_board_.begin()->second;
        Bytes frame = ethernet(board_mac_, 0x0800);
        put(frame, 0x4500, 2);
        put(frame, 20 + 8 + datagram.payload.size(), 2);
        put(frame, 0x00004000, 4);  // no fragments
        put(frame, 0x40110000, 4);  // lifetime 64, UDP, room for the checksum
        put(frame, HOST_ADDRESS, 4);
        put(frame, BOARD_ADDRESS, 4);
        const uint16_t sum = header_sum(frame, 14);
        frame[24] = static_cast<uint8_t>(sum >> 8), frame[25] = static_cast<uint8_t>(sum);
        put(frame, datagram.port, 2);
        put(frame, BOARD_PORT, 2);
        put(frame, 8 + datagram.payload.size(), 2);
        put(frame, 0, 2);  // without a checksum
        put(frame, datagram.payload);
        line_.send(std::move(frame), datagram.damage);
        to_board_.erase(to_board_.begin());
    }

    static Bytes ethernet(const Bytes& to, uint16_t type) {
        Bytes frame = to;
        put(frame, HOST_MAC);
        put(frame, type, 2);
        return frame;
    }

    void arp(const Bytes& to, int operation, const Bytes& target) {
        Bytes frame = ethernet(to, 0x0806);
        put(frame, 0x000108000604, 6);  // of Ethernet and IPv4
        put(frame, static_cast<uint64_t>(operation), 2);
        put(frame, HOST_MAC);
        put(frame, HOST_ADDRESS, 4);
        put(frame, target);
        put(frame, BOARD_ADDRESS, 4);
        line_.send(std::move(frame));
    }

    void arrived(const Bytes& frame, uint64_t now) {
        const uint64_t type = get(frame, 12, 2);
        if (type == 0x0806 && get(frame, 28, 4) == BOARD_ADDRESS && get(frame, 38, 4) == HOST_ADDRESS) {
            const Bytes sender(frame.begin() + 22, frame.begin() + 28);
            if (get(frame, 20, 2) == 1) arp(sender, 2, sender);
            else board_mac_ = sender;
            return;
        }
        const uint64_t size = get(frame, 38, 2);
        const bool right = type == 0x0800 && get(frame, 14, 2) == 0x4500 && !header_sum(frame, 14) && frame[23] == 17 &&
                           get(frame, 26, 4) == BOARD_ADDRESS && get(frame, 30, 4) == HOST_ADDRESS &&
                           Bytes(frame.begin(), frame.begin() + 6) == HOST_MAC && get(frame, 34, 2) == BOARD_PORT &&
                           size >= 8 && get(frame, 16, 2) == 20 + size && 34 + size <= frame.size();
        if (!right) {
            status_.framing++;
            return;
        }
        status_.to_host++;
        const auto begin = frame.begin() + 42;
        const auto port = static_cast<uint16_t>(get(frame, 36, 2));
        pass({port, Bytes(begin, begin + static_cast<ptrdiff_t>(size) - 8), 0}, to_host_faults_, to_host_, now);
    }

    Status& status_;
    Faults to_board_faults_, to_host_faults_;
    Rgmii line_;
    int socket_;
    std::string address_;
    Way to_board_, to_host_;
    double line_cycles_ = 0;
    Bytes board_mac_;     // empty: not known
    uint64_t asked_ = 0;  // when that was, and 1; 0: not asked
};

std::unique_ptr<Carrier> open_carrier(const Options& options, Status& status) {
    return std::make_unique<Udp>(options, status);
}
