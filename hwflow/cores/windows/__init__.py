"""Sliding windows, pools and weighted sums over groups of pixels."""
