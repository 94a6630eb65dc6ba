"""The scenes, a module for each topic."""
