# The core as a block for Vivado's IP integrator, with AXI4-Stream interfaces s_axis and m_axis, in the folder ip: by
# itself vivado -mode batch -source package_ip.tcl; then add the folder to the IP repositories of a project.

source [file join [file dirname [file normalize [info script]]] settings_use.tcl]

proc package_ip {} {
    global here out part top weights
    file delete -force [file join $here ip]
    set sources [file join $here ip src]
    file mkdir $sources
    # All files in one folder, weights by their bare names: the block can be moved.
    set files [copy_sources $sources ""]
    file copy -force [file join $here $top.v] $sources
    lappend files [file join $sources $top.v]
    foreach weight $weights {
        file copy -force [file join $out $weight] $sources
        lappend files [file join $sources [file tail $weight]]
    }
    create_project -force package [file join $here package] -part $part
    add_files -norecurse $files
    set_property top $top [current_fileset]
    update_compile_order -fileset sources_1
    ipx::package_project -root_dir [file join $here ip] -vendor hwflow -library hwflow -taxonomy /UserIP -force
    set core [ipx::current_core]
    set_property name $top $core
    set_property display_name "hwflow core" $core
    set_property description "A quantized neural network, AXI4-Stream in and out" $core
    set_property version 1.0 $core
    foreach interface {s_axis m_axis} {
        ipx::associate_bus_interfaces -busif $interface -clock aclk $core
    }
    ipx::associate_bus_interfaces -clock aclk -reset aresetn $core
    ipx::create_xgui_files $core
    ipx::update_checksums $core
    ipx::check_integrity $core
    ipx::save_core $core
    close_project
}

if {[file tail [info script]] eq "package_ip.tcl" && ![info exists overlay]} {
    package_ip
}
