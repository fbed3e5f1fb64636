"""Bounds on the error of the reference evaluator's floats: a rule for each operator that has one."""
