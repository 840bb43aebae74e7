"""scikit-learn's own checks, for the classifiers on HiGHS and for every encoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import sklearn
from helpers.selection import daily
from packaging.version import Version

ESTIMATORS = {
    "some of each kind": [
        "OptimalTreeClassifier()",
        "OptimalTreeClassifierCV(max_depth=2, cv=3)",
        "QuantileThresholdEncoder()",
        "TableEncoder()",
    ],
    "other classifiers": [
        "OptimalTreeClassifier(missing='error', class_weight='balanced')",
        "OptimalTreeClassifier(objective='accuracy', max_leaf_nodes=4, max_features_used=2)",
        # More than one sample per leaf contradicts the check that a weight of two is two samples, by its meaning.
        "OptimalTreeClassifier(min_samples_leaf=1, constraints=[MaxLeaves(4)])",
        "OptimalTreeClassifierCV(max_depth=2, cv=3, scoring='balanced_accuracy', max_leaf_nodes=3)",
    ],
    "other encoders": [
        "QuantileThresholdEncoder(missing='category')",
        "QuantileBucketEncoder()",
        "AllThresholdsEncoder()",
        "OneHotCategoryEncoder()",
        "TreeGuidedThresholdEncoder()",
        "TableEncoder(missing='error')",
        "TableEncoder(TreeGuidedThresholdEncoder())",
    ],
}

#: Faults of checks themselves: the version that mends it, the check, and what is wrong with it.
FAULTY_CHECKS = [
    ("1.7", "check_sample_weight_equivalence_on_sparse_data", "asked of estimators that say they take no sparse data"),
    ("1.7.2", "check_positive_only_tag_during_fit", "subtracts a fraction from whole numbers in place"),
]
#: Checks that may fail, per estimator, with the reason. None does where scikit-learn's checks have no fault.
EXPECTED_FAILURES = {
    text: {check: why for mended, check, why in FAULTY_CHECKS if Version(sklearn.__version__) < Version(mended)}
    for group in ESTIMATORS.values()
    for text in group
}

# In a process of its own: SciPy reads SCIPY_ARRAY_API once, when imported, and without it scikit-learn skips a check.
SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import check_estimator
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import MaxLeaves
from accel_oct.encoding import *
expected = json.loads(sys.argv[2])
report = {}
for text in json.loads(sys.argv[1]):
    results = check_estimator(eval(text), on_fail=None, on_skip=None, expected_failed_checks=expected.get(text))
    report[text] = [(r["check_name"], r["status"], str(r["exception"])) for r in results]
print(json.dumps(report))
"""


@pytest.mark.parametrize("group", daily(ESTIMATORS, 1))
def test_scikit_learns_checks_pass(group: str) -> None:
    """None fails and none is skipped."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(ESTIMATORS[group]), json.dumps(EXPECTED_FAILURES)]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report) == set(ESTIMATORS[group])
    for text, checks in report.items():
        assert len(checks) > 30, text
        assert [check for check in checks if check[1] not in ("passed", "xfail")] == [], text
