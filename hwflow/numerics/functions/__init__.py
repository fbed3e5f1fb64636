"""Functions of reals and the exact steps that quantizers make of them."""
