"""`python -m hwflow.cli`."""

import sys

from hwflow.cli import main

if __name__ == "__main__":
    sys.exit(main())
