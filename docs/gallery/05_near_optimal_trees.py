"""
Trees that are almost as good
=============================

The optimum is one tree. How many are within a point of it, and what do all of them rely on?
"""

from sklearn.datasets import load_breast_cancer

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import QuantileThresholdEncoder, TableEncoder
from accel_oct.plotting import plot_importance_range, plot_near_optimal, plot_trees

data = load_breast_cancer(as_frame=True)
X, y = data.data.iloc[:, :10], data.target_names[data.target]

encoder = TableEncoder(QuantileThresholdEncoder(6))
model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, encoder=encoder).fit(X, y)
trees = model.near_optimal(X, y, within=0.015)
print(trees)

# %%
# Each mark is a tree: its objective, and how many leaves it has.

plot_near_optimal(trees)

# %%
# What each column matters in the trees of the list: the accuracy that is lost when its values are shuffled. A range
# that does not reach zero belongs to a column that every good tree needs.

plot_importance_range(trees.importance())

# %%
# The best tree, and the best one that does without its first column:

first = trees[0].columns[0]
other = next(place for place, tree in enumerate(trees) if first not in tree.columns)
plot_trees([trees.model(0), trees.model(other)], ["the optimum", f"without {first}"])
