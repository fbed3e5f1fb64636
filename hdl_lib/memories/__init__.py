"""Tables, storages, and address generators."""
