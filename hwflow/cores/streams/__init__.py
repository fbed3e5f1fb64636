"""Element by element on several streams, and elements in another order."""
