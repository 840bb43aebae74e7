"""Near-optimal trees."""
