"""What the host runs before and after the hardware, and the frames that a command works on."""
