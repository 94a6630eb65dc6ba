"""A host's own files: git_ignore.py and the run scripts, rendered from templates for its paths and versions."""
