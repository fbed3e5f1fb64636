// A design as design.h has it, of the class that Verilator made. The class, its pins and their widths are in the generated
// hwflow_pins.h.
#include "design.h"

#include "hwflow_pins.h"  // Model, connect

struct VerilatedDesign : Design {
    Model model;

    explicit VerilatedDesign(VerilatedContext& context) : model{&context} { connect(*this, model); }
    void eval() override { model.eval(); }
    void final() override { model.final(); }
#if VM_TRACE
    void trace(Wave& wave) override { model.trace(&wave, 99); }
#endif
};

Design* new_design(VerilatedContext& context) { return new VerilatedDesign(context); }
