"""Boards: one declarative file each; pins come from amaranth-boards."""
