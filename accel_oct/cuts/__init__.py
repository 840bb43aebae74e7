"""Cuts, one family per module, each a component written against the MIP layer and the formulation."""
