// What the harness knows of a design: pins, taps, and how to compute. Of the class that Verilator makes only
// verilated_design.cpp knows, which is compiled for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
typedef VerilatedFstC Wave;
#elif VM_TRACE
#include "verilated_vcd_c.h"
typedef VerilatedVcdC Wave;
#endif

struct Pins {
    const char* port;
    bool is_output;  // of the design
    size_t bytes;    // of tdata
    void* data;
    uint8_t* valid;
    uint8_t* ready;
    uint8_t* last;
};

struct Tap {  // a stream inside the design
    const char* port;
    size_t bytes;  // of payload
    const void* payload;
    const uint8_t* valid;
    const uint8_t* ready;
};

struct Design {
    std::vector<Pins> pins, load;  // of all streams; of the loader's two
    std::vector<Tap> taps;
    uint8_t *clock, *reset;
    const uint8_t* error;  // null if there is none

    virtual ~Design() = default;
    virtual void eval() = 0;
    virtual void final() = 0;
#if VM_TRACE
    virtual void trace(Wave& wave) = 0;
#endif
};

Design* new_design(VerilatedContext& context);
