"""What the host runs before and after the hardware."""
