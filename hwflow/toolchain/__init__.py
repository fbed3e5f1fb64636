"""External tools: find them, check versions, run them, parse their reports."""
