"""Benchmarks that anyone can run: suites in, one row per run out, reports from the rows. docs/bench.md has the use."""
