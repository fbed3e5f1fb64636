"""Options as texts: of the command line, and as recorded in an output folder."""
