"""The verb ``quantize``: float models in."""
