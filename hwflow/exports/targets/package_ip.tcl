# The core as an IP block of Vivado, in the folder ip: vivado -mode batch -source package_ip.tcl
# Then add the folder ip to the IP repositories of a project. settings.tcl has what differs between cores.

set here [file dirname [file normalize [info script]]]
source [file join $here settings.tcl]

# Copy the Verilog beside the weights, which it then reads by their bare names: the block can be moved.
proc copy_verilog {from to} {
    set file [open $from r]
    set text [read $file]
    close $file
    set file [open $to w]
    puts -nonewline $file [string map [list "WEIGHTS_DIR, \"/" "\""] $text]
    close $file
}

file delete -force [file join $here ip] [file join $here package]
set sources [file join $here ip src]
file mkdir $sources
set files {}
foreach name $verilog {
    set copy [file join $sources [file tail $name]]
    copy_verilog [file join $here $name] $copy
    lappend files $copy
}
foreach name $weights {
    set copy [file join $sources [file tail $name]]
    file copy -force [file join $here $name] $copy
    lappend files $copy
}
create_project -force package [file join $here package] -part $part
add_files -norecurse $files
set_property top $top [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir [file join $here ip] -vendor hwflow -library cores -taxonomy /UserIP -force
set core [ipx::current_core]
set_property name $top $core
set_property display_name $top $core
set_property description "A quantized neural network, AXI4-Stream in and out" $core
set_property version 1.0 $core
# The weights lie in the block: there is no folder to choose.
foreach parameter [ipx::get_user_parameters -quiet WEIGHTS_DIR -of_objects $core] {
    ipx::remove_user_parameter WEIGHTS_DIR $core
}
foreach interface $interfaces {
    ipx::associate_bus_interfaces -busif $interface -clock $clock $core
}
ipx::associate_bus_interfaces -clock $clock -reset $reset $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
