"""How far the reference evaluator's floats can be from the exact reals: a rule for each operator that has a bound."""
