"""
Objective and bound over time
=============================

The best tree so far and what no tree can exceed, while a solver works. With the preset "default" tables prove such an
instance at once; here the integer programme of the paper does it, on HiGHS.
"""

import numpy as np

import accel_oct
from accel_oct.plotting import plot_convergence

rng = np.random.default_rng(0)
X = rng.integers(0, 2, (60, 5))
y = (X[:, 0] & X[:, 1]) ^ (rng.random(60) < 0.15)

result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config="baseline", solver="highs")
print(result.status, result.objective, result.bound, result.nodes)

# %%

plot_convergence(result)

# %%
# What each component did:

for name, figures in result.stats.items():
    print(name, figures)
