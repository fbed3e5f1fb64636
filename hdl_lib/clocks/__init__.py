"""Phase-locked loops of each family."""
