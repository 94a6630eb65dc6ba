"""What a tree uses of other packages, and what a release of them no longer offers in that form."""
