"""Streams: queues, forks, converters, and functions of beats."""
