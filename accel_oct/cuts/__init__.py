"""Families of cuts, one per module, as components of the formulation."""
