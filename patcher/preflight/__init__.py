"""The levels of checks above the markers: environment, data, model, engine, job. The entry is `preflight`."""
