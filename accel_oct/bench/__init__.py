"""Benchmarks that anyone can run: instances in, one JSON line per run out, tables from the lines."""
