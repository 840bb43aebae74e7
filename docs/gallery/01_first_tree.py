"""
A first tree
============

The iris table as it comes, the best tree of depth two, and what its proof says.
"""

from sklearn.datasets import load_iris

from accel_oct import OptimalTreeClassifier
from accel_oct.plotting import plot_tree

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]

model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, y)
print(model.to_text())

# %%
# The objective is the accuracy minus 0.01 for each leaf. Bound and objective are equal: no tree of depth two is better,
# whatever thresholds it uses.

print(model.proof_)
print(f"objective {model.objective_:.4f}, bound {model.bound_:.4f}")

# %%

plot_tree(model)
