"""From a model as read to plain nodes with every shape known and every constant computed."""
