"""The steps of a migration, one module each: `run(walk) -> Outcome`."""
