"""
Missing values
==============

A cell that is empty may itself say something. Each question is asked in two forms, with the missing rows on either
side, and the best tree decides which is better at each split.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import TableEncoder
from accel_oct.plotting import plot_tree

data = load_breast_cancer(as_frame=True)
X, y = data.data.iloc[:, 20:26].copy(), data.target_names[data.target]

# The area was not measured where the tumour looked harmless: what is missing depends on what is looked for.
rng = np.random.default_rng(0)
skipped = (y == "benign") & (rng.random(len(y)) < 0.5)
X.loc[skipped, "worst area"] = np.nan

model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, encoder=TableEncoder()).fit(X, y)
print(model.to_text())

# %%
# "or missing" stands where the rows without a value go.

plot_tree(model)

# %%
# The more often the cell is empty for a reason, the more it is worth:

shares, scores = [0.0, 0.25, 0.5, 0.75, 1.0], []
for share in shares:
    table = data.data.iloc[:, 20:26].copy()
    table.loc[(y == "benign") & (rng.random(len(y)) < share), "worst area"] = np.nan
    best = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, encoder=TableEncoder()).fit(table, y)
    scores.append(best.score(table, y))

fig, ax = plt.subplots()
ax.plot(shares, scores, "o-")
ax.set(xlabel="share of benign rows without an area", ylabel="training accuracy")
