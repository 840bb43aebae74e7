"""Data in pieces: read in sequence or by a cluster, encoded, and reduced to distinct rows or a tally.

Nothing is imported here: `entry` and `detection` import fast, for solves on arrays; the rest loads scikit-learn.
"""
