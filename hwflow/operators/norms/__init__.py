"""Functions of many inputs: quotients, roots and exponentials of streams, and what is made of them."""
