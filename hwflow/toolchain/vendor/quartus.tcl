# The design behind a serial port, from Verilog to a bitstream: quartus_sh -t build.tcl

package require ::quartus::project
package require ::quartus::flow
source [file join [file dirname [file normalize [info script]]] settings_use.tcl]

file mkdir [file join $here quartus]
cd [file join $here quartus]
set verilog [copy_sources [pwd] "[file join $out weights]/"]
project_new $top -overwrite
source [file join $here $top.qsf]
foreach file [concat $verilog [list [file join $here $top.v]]] {
    set_global_assignment -name VERILOG_FILE $file
}
set_global_assignment -name SDC_FILE [file join $here $top.sdc]
set_global_assignment -name PROJECT_OUTPUT_DIRECTORY output_files
export_assignments
execute_flow -compile
project_close
file copy -force [file join output_files $top.sof] [file join $here $top.sof]
