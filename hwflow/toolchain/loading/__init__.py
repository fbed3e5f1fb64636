"""Bitstreams into boards: the programs that load them, and the verb `program`."""
