"""A board's design around the core: top level, clock, files for the tools."""
