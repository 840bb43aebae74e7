"""Programs that are no tests: run them as `PYTHONPATH=tests python -m programs.<name>`."""
