"""The verb ``patch``: give an output folder another model that is the same hardware."""
