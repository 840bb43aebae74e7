"""Mutation testing: plant generated faults one at a time and see whether the tests notice. `make mutants` runs it."""
