"""Ask a live training process through the package `probing`, if the job runs with it; change it only on request."""
