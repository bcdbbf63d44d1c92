"""What the drivers in Python share."""
