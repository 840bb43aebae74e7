"""
A fair tree, and what it costs
==============================

Loans, made up: the repayment depends on income, and the threshold on sex. A tree that is not told otherwise approves
one group more often than the other, although the column "sex" is left out of the splits: income tells it.
"""

import numpy as np
import pandas as pd
from sklearn.base import clone

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.constraints import StatisticalParity
from accel_oct.encoding import QuantileThresholdEncoder, TableEncoder
from accel_oct.plotting import plot_trade_off, plot_trees

rng = np.random.default_rng(0)
n = 400
sex = rng.choice(["f", "m"], n)
income = rng.lognormal(3.0, 0.7, n) * np.where(sex == "m", 1.3, 1.0)
loans = pd.DataFrame(
    {
        "sex": sex,
        "income": income.round(1),
        "years employed": rng.integers(0, 30, n),
        "debt": rng.lognormal(2, 1, n).round(1),
    }
)
pays = income / 20 + loans["years employed"] / 20 - loans["debt"] / 40 + rng.normal(0, 0.5, n) > 1.5
paid = np.where(pays, "yes", "no")

encoder = TableEncoder(QuantileThresholdEncoder(8))
free = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.005, exclude=["sex"], encoder=encoder)
free.fit(loans, paid)
said = free.predict(loans) == "yes"
print("approved:", ", ".join(f"{group} {said[sex == group].mean():.3f}" for group in "fm"))

# %%
# The same with a limit on the difference of the shares. Among all trees of depth two on these splits that satisfy it,
# none is better.

fair = clone(free).set_params(constraints=[StatisticalParity("sex", at_most=0.02)]).fit(loans, paid)
print(fair.constraints_)
print(f"accuracy {free.score(loans, paid):.3f} without the limit, {fair.score(loans, paid):.3f} with it")

# %%

plot_trees([free, fair], ["no limit", "difference at most 0.02"])

# %%
# The best tree for each of several limits, on the training rows and on rows held out:

curve = accel_oct.trade_off(fair, loans, paid, limits=[0.01, 0.02, 0.05, 0.1], cv=3)
plot_trade_off(curve)
