"""Windows and pools."""
