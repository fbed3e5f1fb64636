"""Memories beside block RAM: controllers, the plan of their turns, and what streams from and to them."""
