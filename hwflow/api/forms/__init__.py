"""In which form a model becomes hardware: its loops, frames together, what lies in memory outside."""
