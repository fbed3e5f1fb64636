"""Golden model, simulation, comparison with the reference evaluator."""
