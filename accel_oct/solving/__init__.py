"""Solving: from a binary table to a proven tree, a frontier or all near-optimal trees."""
