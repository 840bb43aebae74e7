"""From a table to a proven tree: `solve`, its phases and switches, and the frontier of accuracy against size."""
