"""Ask a live training process through `probing`, where the job runs with it; write to it only on request."""
