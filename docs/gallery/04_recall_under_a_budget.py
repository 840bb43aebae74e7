"""
Recall under a budget
=====================

A first test may send at most a share of all patients on to the second one. How many of the malignant tumours can it
find? Two limits, one of them varied; where no tree satisfies both, that is proven.
"""

from sklearn.datasets import load_breast_cancer

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.constraints import PositiveBudget, Recall
from accel_oct.encoding import QuantileThresholdEncoder, TableEncoder
from accel_oct.plotting import plot_constraints, plot_trade_off

data = load_breast_cancer(as_frame=True)
X, y = data.data.iloc[:, 20:], data.target_names[data.target]

model = OptimalTreeClassifier(
    max_depth=2,
    leaf_penalty=0.002,
    encoder=TableEncoder(QuantileThresholdEncoder(8)),
    constraints=[Recall("malignant", at_least=0.90), PositiveBudget(0.40, "malignant")],
).fit(X, y)
print(model.to_text())

# %%
# How much of each limit is used:

plot_constraints(model.result_)

# %%
# What more recall costs, at the same budget:

curve = accel_oct.trade_off(model, X, y, limits=[0.90, 0.92, 0.94, 0.96], constraint=0)
print(curve)
plot_trade_off(curve)
