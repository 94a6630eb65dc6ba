"""What a training run's log says of it."""
