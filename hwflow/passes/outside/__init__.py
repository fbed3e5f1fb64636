"""What lies in a board's memory outside: weights, streams, rows of images."""
