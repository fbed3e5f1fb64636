"""External tools: find, check the version, run, parse what they report."""
