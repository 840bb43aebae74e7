"""Data in pieces: read one after the other or by a cluster, encoded, and added up to what a solve needs.

Nothing is imported here: `entry` and `recognising` are light, for solves on arrays; the rest loads scikit-learn.
"""
