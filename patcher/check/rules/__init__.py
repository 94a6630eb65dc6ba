"""The rules by which uses are judged: one module for each kind of thing that a file can need of a package. Pure."""
