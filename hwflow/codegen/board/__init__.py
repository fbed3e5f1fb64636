"""A board's design around the core: top, clock, files for the tools."""
