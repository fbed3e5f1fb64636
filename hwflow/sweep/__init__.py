"""The verb ``explore``: many designs of one model, as independent runs on this machine's cores or on a cluster."""
