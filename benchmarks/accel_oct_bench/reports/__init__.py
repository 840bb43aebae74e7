"""Tables, figures and statistical tests from rows of results."""
