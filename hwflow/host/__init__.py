"""What the host runs before and behind the hardware."""
