# What all scripts of this folder start with: settings.tcl, and the design's sources with weights that are found.

set here [file dirname [file normalize [info script]]]
set out [file dirname $here]
source [file join $here settings.tcl]

# Copy the design's Verilog to a folder; what it reads by $readmemh from weights/, or from the folder of its parameter
# WEIGHTS_DIR, is read from `weights` there, which ends in a slash or is empty.
proc copy_sources {target weights} {
    global out design_sources
    set copies {}
    set paths [list "WEIGHTS_DIR, \"/" "\"$weights" "\"weights/" "\"$weights"]
    foreach source $design_sources {
        set file [open [file join $out $source] r]
        set text [read $file]
        close $file
        set copy [file join $target [file tail $source]]
        set file [open $copy w]
        puts -nonewline $file [string map $paths $text]
        close $file
        lappend copies $copy
    }
    return $copies
}

# Write report.json for hwflow: a flat object of numbers.
proc write_report {values} {
    global here
    set rows {}
    foreach {name value} $values {
        lappend rows " \"$name\": $value"
    }
    set file [open [file join $here report.json] w]
    puts $file "{\n[join $rows ",\n"]\n}"
    close $file
}
