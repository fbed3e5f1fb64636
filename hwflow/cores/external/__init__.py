"""What lies in memory outside the device."""
