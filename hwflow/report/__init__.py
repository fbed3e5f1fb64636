"""A design for people to look at: OUT/report.html, of what an output folder holds."""
