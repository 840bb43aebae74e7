"""Optimal trees as scikit-learn classifiers."""
