// A simulated board: the whole top, pins included, behind what a host opens as it would open a board's port.
//
// It runs as fast as it can while something moves. When nothing has for QUIET_CYCLES, which is longer than the core
// takes for a frame, it sleeps until the host sends something; simulated time then goes on with the clock on the wall.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verilated.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "carrier.h"
#include "settings.h"

static const int SLEEP_MS = 20;         // then a few cycles pass, for a design with timers of its own
static const uint64_t WAKE_CYCLES = 500;

static volatile sig_atomic_t reset_asked = 0, stop_asked = 0;

void fail(const std::string& message) {
    fprintf(stderr, "%s\n", message.c_str());
    exit(1);
}

// The board from its configuration on. What is undefined there is random, by the seed.
struct Board {
    VerilatedContext context;
    std::unique_ptr<Vboard> pins;

    Board(uint64_t seed, Carrier& carrier) {
        context.randReset(2);
        context.randSeed(static_cast<int>(seed % 0x7ffffffe) + 1);
        pins.reset(new Vboard{&context});
        pins->clk = 0;
        carrier.reset(*pins);
        pins->eval();
    }
    ~Board() { pins->final(); }

    void cycle(Carrier& carrier, uint64_t now) {
        carrier.cycle(*pins, now);
        pins->clk = 1;
        pins->eval();
        pins->clk = 0;
        pins->eval();
    }
};

static Status* status_in(const char* path) {
    static Status unseen;
    if (!path) return &unseen;
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || ftruncate(file, sizeof(Status))) fail(std::string("cannot write ") + path);
    void* memory = mmap(nullptr, sizeof(Status), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail(std::string("cannot map ") + path);
    return static_cast<Status*>(memory);
}

int main(int argc, char** argv) {
    Options options;
    const char* status_file = nullptr;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        char* end = nullptr;
        if (i + 1 == argc) fail("usage: board [--faults RATE] [--seed NUMBER] [--status FILE]");
        if (name == "--faults") options.faults = strtod(argv[i + 1], &end);
        else if (name == "--seed") options.seed = strtoull(argv[i + 1], &end, 10);
        else if (name == "--status") status_file = argv[i + 1];
        else fail("unknown option " + name);
        if (end && (*end || end == argv[i + 1])) fail(name + " must be a number, not " + argv[i + 1]);
    }
    if (!(options.faults >= 0 && options.faults <= 1)) fail("--faults must be from 0 to 1");
    Status& status = *status_in(status_file);

    signal(SIGUSR1, [](int) { reset_asked = 1; });
    signal(SIGINT, [](int) { stop_asked = 1; });
    signal(SIGTERM, [](int) { stop_asked = 1; });
    const std::unique_ptr<Carrier> carrier = open_carrier(options, status);
    auto board = std::make_unique<Board>(options.seed, *carrier);
    uint64_t now = 0;
    while (now < STARTUP_CYCLES || (!carrier->ready() && !stop_asked)) board->cycle(*carrier, now++);
    printf("%s\n", carrier->address().c_str());
    fflush(stdout);

    const uint64_t pace = carrier->pace();
    uint64_t moved = now;  // when something did
    while (!stop_asked) {
        if (reset_asked) {
            reset_asked = 0;
            status.resets++;
            board = std::make_unique<Board>(options.seed + status.resets, *carrier);
            moved = now;
        }
        carrier->exchange(now);
        const bool awake = now - moved < QUIET_CYCLES;
        for (const uint64_t end = now + (awake ? pace : WAKE_CYCLES); now < end; now++) board->cycle(*carrier, now);
        if (carrier->busy()) moved = now;
        else if (!awake) {
            const auto begin = std::chrono::steady_clock::now();
            pollfd host{carrier->descriptor(), POLLIN, 0};
            if (poll(&host, 1, SLEEP_MS) > 0) moved = now;
            const std::chrono::duration<double> slept = std::chrono::steady_clock::now() - begin;
            now += static_cast<uint64_t>(slept.count() * CLOCK_HZ);
        }
        status.cycles = now;
    }
    return 0;
}
