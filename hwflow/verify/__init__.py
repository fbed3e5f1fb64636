"""Golden model, simulation, comparison with the reference evaluator, and the frames that they work on."""
