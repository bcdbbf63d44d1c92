"""What the runner itself is held to."""
