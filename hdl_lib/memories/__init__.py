"""Tables, storages, and walks through them."""
