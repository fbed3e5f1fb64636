"""Tables that are written while a design runs: the loader, what it writes by, and the gate that lets frames finish."""
