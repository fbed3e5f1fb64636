# What hwflow reads of an implemented design: slack, and the cells of the core without what is around it.

proc count_cells {pattern} {
    set filter "NAME =~ *hwflow_top/* && IS_PRIMITIVE && REF_NAME =~ $pattern"
    return [llength [get_cells -quiet -hierarchical -filter $filter]]
}

proc report_core {} {
    set paths [get_timing_paths -quiet -setup -max_paths 1]
    set slack [expr {[llength $paths] ? [get_property SLACK [lindex $paths 0]] : "null"}]
    write_report [list \
        slack_ns $slack \
        lut [count_cells LUT*] \
        ff [count_cells FD*] \
        dsp [count_cells DSP48*] \
        bram [expr {[count_cells RAMB18*] + 2 * [count_cells RAMB36*]}] \
    ]
}
