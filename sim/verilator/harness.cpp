// Bulk simulation of an emitted design with Verilator: drives every input stream, checks every output stream, measures.
//
// Usage: harness CONFIG SEED. What it knows of the design is in design.h, so that it is compiled once for all; the config is
// lines of "key value"; words are raw tdata bytes, least significant first, beat after beat. The verdict is one JSON file;
// stdout says now and then how many frames are done.
//
// A cycle: with the clock low the pins are driven and settle; what the outputs then show is what the rising edge acts on
// (a handshake is valid and ready at that moment); then the clock rises. Cycle 0 is the first one after reset.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "design.h"

static const uint64_t NONE = ~uint64_t{0};
static const int RESET_CYCLES = 4;
static const uint64_t TAIL_CYCLES = 64;  // run on after the last beat: nothing more may come
static const uint64_t REPORT_CYCLES = 1 << 16;  // after so many cycles a line "frames N" on stdout says how many are done

[[noreturn]] static void fail(const std::string& what) {
    fprintf(stderr, "harness: %s\n", what.c_str());
    exit(2);
}

struct Random {  // SplitMix64 (Steele, Lea, Flood 2014)
    uint64_t state;
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    bool chance(double p) { return p > 0 && static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }
};

struct Violation {
    const char* kind = nullptr;
    const char* port = nullptr;
    uint64_t frame = 0, beat = 0, cycle = 0;
    std::string detail;
};

struct Report {
    uint64_t violations = 0;
    Violation first;
    void add(const char* kind, const char* port, uint64_t frame, uint64_t beat, uint64_t cycle, const std::string& detail) {
        if (violations++ == 0) first = {kind, port, frame, beat, cycle, detail};
    }
};

struct Stream {
    Pins pins;
    uint64_t beats, frames;
    std::vector<uint8_t> words;
    uint64_t at = 0;  // beats passed so far, over all frames
    std::vector<uint64_t> first, last;
    uint64_t wait = NONE;  // frames that may pass before a load has begun
    Random random{0};

    bool done() const { return at >= beats * frames; }
    const uint8_t* word() const { return words.data() + at * pins.bytes; }
    void passed(uint64_t cycle) {
        if (at % beats == 0) first.push_back(cycle);
        if (at % beats == beats - 1) last.push_back(cycle);
        at++;
    }
};

struct Source : Stream {
    bool offering = false;

    void drive(double gap) {
        if (!offering && !done() && at / beats < wait && !random.chance(gap)) {
            memcpy(pins.data, word(), pins.bytes);
            *pins.last = at % beats == beats - 1;
            offering = true;
        } else if (!offering) {  // what is not valid means nothing: show the opposite of what was there
            uint8_t* data = static_cast<uint8_t*>(pins.data);
            for (size_t i = 0; i < pins.bytes; i++) data[i] = static_cast<uint8_t>(~data[i]);
            *pins.last = !*pins.last;
        }
        *pins.valid = offering;
    }
    bool sample(uint64_t cycle) {
        if (!offering || !*pins.ready) return false;
        passed(cycle);
        offering = false;
        return true;
    }
};

struct Sink : Stream {
    uint64_t channels = 1, lanes = 1, element_bytes = 1;
    bool is_signed = false;
    bool ahead = false;  // of inputs: what follows from state alone comes before them
    bool held = false, held_last = false;
    std::vector<uint8_t> held_word;
    uint64_t wrong_elements = 0, wrong_frames = 0, wrong_frame = NONE;
    uint64_t bad_frame = NONE, bad_beat = 0, bad_lane = 0;
    int64_t expected = 0, got = 0;

    uint64_t real_lanes(uint64_t beat) const {
        const uint64_t left = channels - beat % ((channels + lanes - 1) / lanes) * lanes;
        return left < lanes ? left : lanes;
    }
    int64_t element(const uint8_t* word, uint64_t lane) const {
        uint64_t value = is_signed && (word[(lane + 1) * element_bytes - 1] & 0x80) ? ~uint64_t{0} : 0;
        for (uint64_t i = element_bytes; i-- > 0;) value = value << 8 | word[lane * element_bytes + i];
        return static_cast<int64_t>(value);
    }
    void drive(double stall) { *pins.ready = !random.chance(stall); }
    void compare(const uint8_t* word_got) {
        const uint64_t frame = at / beats, beat = at % beats, real = real_lanes(beat);
        if (memcmp(word_got, word(), real * element_bytes) == 0) return;
        if (wrong_frame != frame) wrong_frames++;
        wrong_frame = frame;
        for (uint64_t lane = 0; lane < real; lane++) {
            const int64_t want = element(word(), lane), have = element(word_got, lane);
            if (want == have) continue;
            if (bad_frame == NONE) bad_frame = frame, bad_beat = beat, bad_lane = lane, expected = want, got = have;
            wrong_elements++;
        }
    }
    bool sample(uint64_t cycle, Report& report) {
        const uint64_t frame = at / beats, beat = at % beats;
        const bool valid = *pins.valid, last = *pins.last;
        const uint8_t* data = static_cast<const uint8_t*>(pins.data);
        if (done()) {
            if (valid && !ahead)
                report.add("surplus", pins.port, frame, beat, cycle, "there must be no beat after the last frame's last");
            return false;
        }
        if (held && !valid) {
            report.add("valid-dropped", pins.port, frame, beat, cycle, "tvalid must stay 1 until tready, not fall to 0");
        } else if (held) {
            if (memcmp(held_word.data(), data, pins.bytes) != 0)
                report.add("data-changed", pins.port, frame, beat, cycle, "tdata must not change until tready");
            if (held_last != last)
                report.add("last-changed", pins.port, frame, beat, cycle, "tlast must not change until tready");
        }
        held = false;
        if (!valid) return false;
        if (cycle == 0 && !ahead) report.add("valid-in-reset", pins.port, frame, beat, cycle, "tvalid must be 0 after reset, not 1");
        if (!*pins.ready) {
            held = true;
            held_last = last;
            memcpy(held_word.data(), data, pins.bytes);
            return false;
        }
        if (last != (beat == beats - 1)) {
            std::ostringstream text;
            text << "tlast must be " << !last << " in beat " << beat << " of " << beats << ", not " << last;
            report.add("wrong-last", pins.port, frame, beat, cycle, text.str());
        }
        compare(data);
        passed(cycle);
        return true;
    }
    uint64_t missing() const {
        uint64_t elements = 0;
        for (uint64_t i = at; i < beats * frames; i++) elements += real_lanes(i % beats);
        return elements;
    }
    uint64_t missing_frames() const {  // frames not complete and not already counted as wrong
        if (done()) return 0;
        const uint64_t incomplete = frames - at / beats;
        return incomplete - (wrong_frame == at / beats);
    }
};

struct Record {  // of a tap: its payloads, beat after beat
    Tap tap;
    uint64_t left = 0;  // beats that are still expected
    FILE* file = nullptr;

    void sample() {
        if (!left || !*tap.valid || !*tap.ready) return;
        if (fwrite(tap.payload, 1, tap.bytes, file) != tap.bytes) fail(std::string("cannot record ") + tap.port);
        left--;
    }
    void close() {
        if (fclose(file) != 0) fail(std::string("cannot record ") + tap.port);
    }
};

struct Load {  // a packet to the loader of a design's tables, and its answer; a byte a beat each
    uint64_t after = 0;  // frames: those behind them are offered when the first byte has been taken
    std::vector<uint8_t> bytes, answer;
    uint64_t sent = 0, answered = 0;
    uint64_t begin = NONE, end = NONE;  // cycles of the first byte and of the answer's last one

    bool done() const { return answered >= answer.size(); }
    bool refuses() const { return answer.back() & 1; }
};

struct Loader {
    Pins in{}, out{};
    std::vector<Load> loads;
    size_t at = 0;
    bool offering = false;
    Random random{0};

    bool done() const { return at >= loads.size(); }
    bool may_refuse() const { return (!done() && loads[at].refuses()) || (at && loads[at - 1].refuses()); }
    // Frames that may begin: those in front of the first packet that has not.
    uint64_t limit() const {
        for (size_t i = at; i < loads.size(); i++)
            if (!loads[i].sent) return loads[i].after;
        return NONE;
    }
    void drive(double gap, double stall, bool reached) {
        if (loads.empty()) return;
        if (!offering && !done() && reached && loads[at].sent < loads[at].bytes.size() && !random.chance(gap)) {
            *static_cast<uint8_t*>(in.data) = loads[at].bytes[loads[at].sent];
            *in.last = loads[at].sent + 1 == loads[at].bytes.size();
            offering = true;
        } else if (!offering) {
            *static_cast<uint8_t*>(in.data) ^= 0xff;
            *in.last = !*in.last;
        }
        *in.valid = offering;
        *out.ready = !random.chance(stall);
    }
    bool sample(uint64_t cycle, Report& report) {
        if (loads.empty()) return false;
        bool moved = false;
        if (offering && *in.ready) {
            if (!loads[at].sent++) loads[at].begin = cycle;
            offering = false, moved = true;
        }
        if (*out.valid && *out.ready) {
            const uint8_t got = *static_cast<const uint8_t*>(out.data);
            if (done() || loads[at].sent < loads[at].bytes.size()) {
                report.add("surplus", out.port, at, 0, cycle, "there must be no answer before a packet's end");
                return true;
            }
            Load& load = loads[at];
            const bool last = load.answered + 1 == load.answer.size();
            if (got != load.answer[load.answered] || *out.last != last) {
                std::ostringstream text;
                text << "byte " << load.answered << " of the answer must be " << int(load.answer[load.answered]) << " with tlast "
                     << last << ", not " << int(got) << " with " << int(*out.last);
                report.add("wrong-answer", out.port, at, load.answered, cycle, text.str());
            }
            if (++load.answered == load.answer.size()) load.end = cycle, at++;
            moved = true;
        }
        return moved;
    }
};

struct Config {
    uint64_t frames = 1, seed = 0, watchdog = 1000000;
    uint64_t before = 0;  // cycles after reset in which a design with state reads it, before cycle 0
    double stall = 0, gap = 0;
    std::string result, wave;
    std::vector<Source> sources;
    std::vector<Sink> sinks;
    std::vector<Record> records;
    Loader loader;
};

static std::vector<uint8_t> bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot read " + path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static void load(Stream& stream, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    stream.words.resize(stream.beats * stream.frames * stream.pins.bytes);
    if (!file.read(reinterpret_cast<char*>(stream.words.data()), static_cast<std::streamsize>(stream.words.size())))
        fail("cannot read " + path);
}

static Config read_config(const char* path, uint64_t seed, const Design& design) {
    std::ifstream file(path);
    if (!file) fail(std::string("cannot read ") + path);
    Config config;
    config.seed = seed;
    std::string line;
    const std::vector<Pins>& pins = design.pins;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string key, port, words_path;
        words >> key;
        if (key == "frames") words >> config.frames;
        else if (key == "watchdog") words >> config.watchdog;
        else if (key == "before") words >> config.before;
        else if (key == "stall") words >> config.stall;
        else if (key == "gap") words >> config.gap;
        else if (key == "result") std::getline(words >> std::ws, config.result);
        else if (key == "wave") std::getline(words >> std::ws, config.wave);
        else if (key == "stream") {  // stream PORT BEATS CHANNELS LANES ELEMENT_BYTES SIGNED WORDS
            Sink s;
            words >> port >> s.beats >> s.channels >> s.lanes >> s.element_bytes >> s.is_signed;
            std::getline(words >> std::ws, words_path);
            s.frames = config.frames;
            s.ahead = config.before > 0;
            const Pins* found = nullptr;
            for (const Pins& p : pins)
                if (port == p.port) found = &p;
            if (!found) fail("no port " + port);
            s.pins = *found;
            s.random.state = config.seed * 0x2545f4914f6cdd1du + static_cast<uint64_t>(found - pins.data());
            s.random.next();
            s.held_word.resize(s.pins.bytes);
            load(s, words_path);
            if (s.pins.is_output) config.sinks.push_back(s);
            else {
                Source source;
                static_cast<Stream&>(source) = s;
                config.sources.push_back(source);
            }
        } else if (key == "load") {  // load AFTER BYTES; its answer lies beside it
            Load one;
            words >> one.after;
            std::getline(words >> std::ws, words_path);
            one.bytes = bytes_of(words_path), one.answer = bytes_of(words_path + ".answer");
            if (one.bytes.empty() || one.answer.empty()) fail("a load must have bytes and an answer");
            for (const Pins& p : design.load) (p.is_output ? config.loader.out : config.loader.in) = p;
            if (!config.loader.in.data) fail("no port for loads");
            config.loader.random.state = config.seed ^ 0x9e3779b97f4a7c15u;
            config.loader.loads.push_back(one);
        } else if (key == "tap") {  // tap PORT BEATS FILE
            Record record;
            words >> port >> record.left;
            std::getline(words >> std::ws, words_path);
            for (const Tap& tap : design.taps)
                if (port == tap.port) record.tap = tap, record.file = fopen(words_path.c_str(), "wb");
            if (!record.file) fail("cannot record " + port + " in " + words_path);
            config.records.push_back(record);
        } else if (!key.empty()) fail("unknown key " + key);
    }
    return config;
}

static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

static void list(std::ostream& out, const char* key, const std::vector<uint64_t>& values) {
    out << "\"" << key << "\": [";
    for (size_t i = 0; i < values.size(); i++) out << (i ? ", " : "") << values[i];
    out << "]";
}

static void waiting(std::ostream& out, const Stream& s, bool& comma) {
    if (s.done()) return;
    out << (comma ? ", " : "") << "{\"port\": " << quoted(s.pins.port) << ", \"frame\": " << s.at / s.beats
        << ", \"beat\": " << s.at % s.beats << "}";
    comma = true;
}

static void write_result(const Config& c, const Report& report, uint64_t hang_cycle, uint64_t error_cycle) {
    uint64_t wrong = 0, wrong_frames = 0, first_in = NONE, first_out = NONE, cycles = 0, final = 0, before = 0;
    const Sink* bad = nullptr;
    bool complete = true;
    for (const Sink& s : c.sinks) {
        wrong += s.wrong_elements + s.missing();
        const uint64_t frames = s.wrong_frames + s.missing_frames();
        if (frames > wrong_frames) wrong_frames = frames;  // the worst stream's count
        if (s.bad_frame != NONE && (!bad || s.bad_frame < bad->bad_frame)) bad = &s;
        if (!s.first.empty() && s.first[0] < first_out) first_out = s.first[0];
        if (s.last.size() < c.frames || c.frames < 2) complete = false;
        else {
            final = std::max(final, s.last[c.frames - 1]);
            before = std::max(before, s.last[c.frames - 2]);
        }
        if (!s.last.empty()) cycles = std::max(cycles, s.last.back() + 1);
    }
    for (const Source& s : c.sources)
        if (!s.first.empty() && s.first[0] < first_in) first_in = s.first[0];

    std::ofstream out(c.result);
    out << "{\"frames\": " << c.frames << ", \"mismatches\": " << wrong << ", \"mismatching_frames\": " << wrong_frames;
    out << ",\n \"first_mismatch\": ";
    if (bad)
        out << "{\"port\": " << quoted(bad->pins.port) << ", \"frame\": " << bad->bad_frame << ", \"beat\": " << bad->bad_beat
            << ", \"lane\": " << bad->bad_lane << ", \"expected\": " << bad->expected << ", \"got\": " << bad->got << "}";
    else out << "null";
    out << ",\n \"violations\": " << report.violations << ", \"first_violation\": ";
    const Violation& v = report.first;
    if (v.kind)
        out << "{\"kind\": " << quoted(v.kind) << ", \"port\": " << quoted(v.port) << ", \"frame\": " << v.frame
            << ", \"beat\": " << v.beat << ", \"cycle\": " << v.cycle << ", \"detail\": " << quoted(v.detail) << "}";
    else out << "null";
    out << ",\n \"hang\": ";
    if (hang_cycle != NONE) {
        bool comma = false;
        out << "{\"cycle\": " << hang_cycle << ", \"idle\": " << c.watchdog << ", \"waiting\": [";
        for (const Sink& s : c.sinks) waiting(out, s, comma);
        for (const Source& s : c.sources) waiting(out, s, comma);
        out << "]}";
    } else out << "null";
    out << ",\n \"error_cycle\": ";
    if (error_cycle != NONE) out << error_cycle;
    else out << "null";
    out << ", \"cycles\": " << cycles << ", \"initiation_interval\": ";
    if (complete) out << final - before;
    else out << "null";
    out << ", \"latency\": ";
    if (first_in != NONE && first_out != NONE) out << static_cast<int64_t>(first_out - first_in);
    else out << "null";
    out << ",\n \"streams\": {";
    bool comma = false;
    auto one = [&](const Stream& s) {
        out << (comma ? ",\n  " : "") << quoted(s.pins.port) << ": {\"beats\": " << s.at << ", ";
        list(out, "first", s.first);
        out << ", ";
        list(out, "last", s.last);
        out << "}";
        comma = true;
    };
    for (const Source& s : c.sources) one(s);
    for (const Sink& s : c.sinks) one(s);
    out << "},\n \"loads\": [";
    for (size_t i = 0; i < c.loader.loads.size(); i++) {
        const Load& one = c.loader.loads[i];
        out << (i ? ", " : "") << "[" << (one.begin == NONE ? "null" : std::to_string(one.begin)) << ", "
            << (one.end == NONE ? "null" : std::to_string(one.end)) << "]";
    }
    out << "]}\n";
    if (!out) fail("cannot write " + c.result);
}

int main(int argc, char** argv) {
    if (argc != 3) fail("usage: harness CONFIG SEED");
    const uint64_t seed = strtoull(argv[2], nullptr, 10);
    VerilatedContext context;
    context.randReset(2);  // registers and memories start with random values, as they may in hardware
    context.randSeed(static_cast<int>(seed % 0x7ffffffe) + 1);
    const std::unique_ptr<Design> design(new_design(context));
    Config c = read_config(argv[1], seed, *design);
    for (Source& s : c.sources) *s.pins.valid = 0;
    for (Sink& s : c.sinks) *s.pins.ready = 0;
    uint64_t time = 0;
#if VM_TRACE
    std::unique_ptr<Wave> wave;
    if (!c.wave.empty()) {
        context.traceEverOn(true);
        wave.reset(new Wave);
        design->trace(*wave);
        wave->open(c.wave.c_str());
        if (!wave->isOpen()) fail("cannot write " + c.wave);
    }
#endif
    auto half = [&](int level) {
        *design->clock = static_cast<uint8_t>(level);
        design->eval();
#if VM_TRACE
        if (wave) wave->dump(time);
#endif
        time += 5;
        context.time(time);
    };

    *design->reset = 1;
    for (int i = 0; i < RESET_CYCLES; i++) {
        half(0);
        half(1);
    }
    *design->reset = 0;
    for (uint64_t i = 0; i < c.before; i++) {
        half(0);
        for (Record& r : c.records) r.sample();
        half(1);
    }

    Report report;
    uint64_t error_cycle = NONE, hang_cycle = NONE, idle = 0, tail = 0;
    for (uint64_t cycle = 0; tail < TAIL_CYCLES; cycle++) {
        bool reached = true;
        for (Source& s : c.sources) {
            s.wait = c.loader.limit();
            reached &= c.loader.done() || s.at >= s.beats * std::min(s.frames, c.loader.loads[c.loader.at].after);
            s.drive(c.gap);
        }
        c.loader.drive(c.gap, c.stall, reached);
        for (Sink& s : c.sinks) s.drive(c.stall);
        half(0);
        bool progress = false, done = true;
        for (Source& s : c.sources) {
            progress |= s.sample(cycle);
            done &= s.done();
        }
        for (Sink& s : c.sinks) {
            progress |= s.sample(cycle, report);
            done &= s.done();
        }
        progress |= c.loader.sample(cycle, report);
        done &= c.loader.done();
        for (Record& r : c.records) r.sample();
        const uint8_t* error = design->error;
        if (error && *error && error_cycle == NONE && !c.loader.may_refuse()) error_cycle = cycle;
        half(1);
        idle = progress ? 0 : idle + 1;
        if ((cycle + 1) % REPORT_CYCLES == 0) {
            uint64_t complete = c.frames;
            for (const Sink& s : c.sinks) complete = std::min(complete, s.at / s.beats);
            printf("frames %llu\n", static_cast<unsigned long long>(complete));
            fflush(stdout);
        }
        if (done) tail++;
        else if (idle >= c.watchdog) {
            hang_cycle = cycle;
            break;
        }
        if (context.gotFinish()) fail("the design called $finish");
    }
    for (Record& r : c.records) r.close();
    design->final();
#if VM_TRACE
    if (wave) wave->close();
#endif
    write_result(c, report, hang_cycle, error_cycle);
    return 0;
}
