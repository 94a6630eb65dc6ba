"""What a job has left behind, told apart from all that is somebody else's, and taken away once it was listed."""
