# The design behind a serial port, from Verilog to a bitstream: vivado -mode batch -source build.tcl

source [file join [file dirname [file normalize [info script]]] settings_use.tcl]
source [file join $here vivado_report.tcl]

file mkdir [file join $here vivado]
cd [file join $here vivado]
read_verilog [copy_sources [pwd] "[file join $out weights]/"]
read_verilog [file join $here $top.v]
read_xdc [file join $here $top.xdc]
synth_design -top $top -part $part
report_utilization -hierarchical -file [file join $here utilization_synthesized.rpt]
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file [file join $here utilization.rpt]
report_timing_summary -file [file join $here timing.rpt]
report_core
write_bitstream -force [file join $here $top.bit]
