"""Lines of bytes between board and host."""
