# A PYNQ overlay: the core behind an AXI DMA beside the processors of a Zynq: vivado -mode batch -source build.tcl
# Leaves hwflow.bit and hwflow.hwh.

set overlay 1
source [file join [file dirname [file normalize [info script]]] package_ip.tcl]
source [file join $here vivado_report.tcl]

proc block {name kind} {
    set found [lindex [lsort -dictionary [get_ipdefs -all "*:*:$kind:*"]] end]
    return [create_bd_cell -type ip -vlnv $found $name]
}

package_ip
create_project -force overlay [file join $here overlay] -part $part
if {[llength [get_board_parts -quiet $board_part]]} {
    set_property board_part $board_part [current_project]
} else {
    puts "note: the board files $board_part are not installed: memory timing is Vivado's default. On a board that\
        runs PYNQ the boot loader has set the memory up, and overlays do not change that."
}
set_property ip_repo_paths [file join $here ip] [current_project]
update_ip_catalog

create_bd_design hwflow
set ps [block ps processing_system7]
apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 \
    -config {make_external "FIXED_IO, DDR" apply_board_preset "1" Master "Disable" Slave "Disable"} $ps
set_property -dict [list \
    CONFIG.PCW_CRYSTAL_PERIPHERAL_FREQMHZ $crystal_mhz \
    CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ $mhz \
    CONFIG.PCW_USE_M_AXI_GP0 1 \
    CONFIG.PCW_USE_S_AXI_HP0 1 \
] $ps
set core [block core $top]
set dma [block dma axi_dma]
set widest [expr {8 * max($input_beat, $output_beat)}]
set_property -dict [list \
    CONFIG.c_include_sg 0 \
    CONFIG.c_sg_include_stscntrl_strm 0 \
    CONFIG.c_sg_length_width 26 \
    CONFIG.c_m_axi_mm2s_data_width [expr {max(64, $widest)}] \
    CONFIG.c_m_axi_s2mm_data_width [expr {max(64, $widest)}] \
    CONFIG.c_m_axis_mm2s_tdata_width [expr {8 * $input_beat}] \
    CONFIG.c_mm2s_burst_size 16 \
    CONFIG.c_s2mm_burst_size 16 \
] $dma
set control [block control smartconnect]
set_property -dict {CONFIG.NUM_SI 1 CONFIG.NUM_MI 1} $control
set memory [block memory smartconnect]
set_property -dict {CONFIG.NUM_SI 2 CONFIG.NUM_MI 1} $memory
set reset [block reset proc_sys_reset]

foreach {from to} {
    ps/M_AXI_GP0 control/S00_AXI
    control/M00_AXI dma/S_AXI_LITE
    dma/M_AXI_MM2S memory/S00_AXI
    dma/M_AXI_S2MM memory/S01_AXI
    memory/M00_AXI ps/S_AXI_HP0
    dma/M_AXIS_MM2S core/s_axis
    core/m_axis dma/S_AXIS_S2MM
} {
    connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
}
foreach clock {
    ps/M_AXI_GP0_ACLK ps/S_AXI_HP0_ACLK control/aclk memory/aclk core/aclk reset/slowest_sync_clk
    dma/s_axi_lite_aclk dma/m_axi_mm2s_aclk dma/m_axi_s2mm_aclk
} {
    connect_bd_net [get_bd_pins ps/FCLK_CLK0] [get_bd_pins $clock]
}
connect_bd_net [get_bd_pins ps/FCLK_RESET0_N] [get_bd_pins reset/ext_reset_in]
foreach pin {control/aresetn memory/aresetn core/aresetn dma/axi_resetn} {
    connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins $pin]
}
assign_bd_address
validate_bd_design
save_bd_design

set diagram [get_files hwflow.bd]
add_files -norecurse [make_wrapper -files $diagram -top]
set_property top hwflow_wrapper [current_fileset]
update_compile_order -fileset sources_1
launch_runs impl_1 -to_step write_bitstream
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
    error "implementation must finish, see [file join $here overlay overlay.runs]"
}
file copy -force [file join $here overlay overlay.runs impl_1 hwflow_wrapper.bit] [file join $here hwflow.bit]
set handoff [glob -directory [file join $here overlay] overlay.*/sources_1/bd/hwflow/hw_handoff/hwflow.hwh]
file copy -force [lindex $handoff 0] [file join $here hwflow.hwh]
open_run impl_1
report_utilization -hierarchical -file [file join $here utilization.rpt]
report_timing_summary -file [file join $here timing.rpt]
report_core
