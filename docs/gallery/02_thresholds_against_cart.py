"""
Every threshold, against CART
=============================

CART chooses one split at a time. Here a tree of the same depth is the best of all, over every threshold of the table,
and the bound says what no tree of that depth can exceed.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifier
from accel_oct.plotting import plot_tree

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]

depths = [1, 2, 3]
cart = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y).score(X, y) for depth in depths]
best = [OptimalTreeClassifier(max_depth=depth, leaf_penalty=0.001).fit(X, y) for depth in depths]

for depth, greedy, model in zip(depths, cart, best, strict=True):
    print(f"depth {depth}: CART {greedy:.4f}, optimal {model.score(X, y):.4f}, {model.proof_}")

# %%
# These are training accuracies: they show what each depth can do, not how a tree does on new rows.

fig, ax = plt.subplots()
ax.plot(depths, cart, "s--", label="CART")
ax.plot(depths, [model.score(X, y) for model in best], "o-", label="optimal")
ax.set(xticks=depths, xlabel="depth", ylabel="training accuracy")
ax.legend()

# %%
# The optimal tree of depth two:

plot_tree(best[1])
