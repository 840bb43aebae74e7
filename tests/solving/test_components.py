"""Components of one's own in solve(): built, asked, counted; and refused where they would make the result wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from oracles.dynamic_programme import optimal_value
from oracles.instances import random_instance

import accel_oct
from accel_oct.constraints import MaxLeaves
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Component, Master, Response, TreePoint
from accel_oct.formulation.components import CheckedComponent
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.solving.config import FAMILIES, PRESETS, Config
from accel_oct.solving.phases import branch_and_cut


class TotalScore:
    """No tree scores above the total weight: IMPLIED, and of no use but to be counted."""

    name = "total_score"
    needs = Needs([Event.CANDIDATE], [Validity.IMPLIED])

    def __init__(self, master: Master) -> None:
        self.master = master
        self.seen = 0

    def respond(self, point: TreePoint) -> Response:
        self.seen += 1
        theta = self.master.theta.index
        return Response((Cuts(Rows.single(theta, 1.0, upper=float(theta.size)), Validity.IMPLIED, self.name),))


class Requiring(TotalScore):
    name = "requiring"
    needs = Needs([Event.CANDIDATE], [Validity.REQUIRED])


class Choosing(TotalScore):
    name = "choosing"
    needs = Needs([Event.CANDIDATE], [Validity.OPTIMALITY], keeps="lightest first")


def coupling(master: Master) -> Component:
    master.couple_subtrees("a secret")
    return TotalScore(master)


def data(n_samples: int = 30, n_features: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.integers(0, 2, (n_samples, n_features)), rng.integers(0, 2, n_samples)


@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
def test_a_component_takes_part(backend: str) -> None:
    """It is built on the master, sees points, its cuts are counted, and the result is what it was."""
    skip_unless_available(backend)
    X, y = data()
    built: list[TotalScore] = []

    def factory(master: Master) -> Component:
        built.append(TotalScore(master))
        return built[-1]

    without = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config="baseline", solver=backend)
    result = accel_oct.solve(
        X, y, max_depth=2, leaf_penalty=0.01, config="baseline", solver=backend, components=[factory]
    )
    assert result.status == "optimal" and result.objective == without.objective
    assert len(built) == 1 and built[0].seen == result.stats["total_score"]["calls"] > 0
    assert result.stats["total_score"]["cuts"] == built[0].seen


def test_the_estimator_hands_components_over() -> None:
    """And cloning keeps them."""
    from sklearn.base import clone

    X, y = data()
    model = accel_oct.OptimalTreeClassifier(2, config="baseline", encoder=None, components=[TotalScore])
    fitted = clone(model).fit(X, y)
    assert fitted.result_.stats["total_score"]["calls"] > 0


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ([TotalScore, 3], r"components\[1\] must be a factory"),
        (TotalScore, "components must be a list"),
        ("total_score", "components must be a list"),
        (["total_score"], r"components\[0\]: no installed package registers a component 'total_score'"),
        ([lambda master: None], r"components\[0\] .*built no component: it has no name, needs, respond"),
        ([Requiring], r"components\[0\] \(Requiring\) decides which trees are allowed.*constraints="),
        ([coupling], r"components\[0\] \(coupling\) decides which trees are allowed.*constraints="),
    ],
)
@pytest.mark.parametrize("preset", ["default", "baseline"])
def test_what_cannot_take_part_is_named(preset: str, components: Any, message: str) -> None:
    """Before any work is done, also where the tables would have proven the result without it."""
    X, y = data()
    with pytest.raises(InvalidInputError, match=message):
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config=preset, components=components)


def test_optimality_cuts_of_ones_own_and_constraints() -> None:
    """The former choose subtrees one by one, which the latter forbid; two rules of choice exclude each other too."""
    X, y = data()
    with pytest.raises(InvalidInputError, match=r"OPTIMALITY cuts.*at most 3 leaves"):
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, components=[Choosing], constraints=[MaxLeaves(3)])
    with pytest.raises(accel_oct.mip.HandlerError, match="different rules"):
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, config="paper", components=[Choosing])


def test_names_must_differ() -> None:
    """From each other and from those of the library, or statistics would be mixed up."""
    X, y = data()
    for other in (TotalScore, type("Impostor", (TotalScore,), {"name": "benders"})):
        with pytest.raises(InvalidInputError, match=f"distinct names.*{other.name}"):
            accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, config="baseline", components=[TotalScore, other])


def test_a_new_family_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the tuple is built, with its switches; nothing else has to know of it."""
    from accel_oct.solving.config import Family

    asked: list[bool] = []

    def build(site: Any, enabled: bool) -> Component | None:
        asked.append(enabled)
        return TotalScore(site.master) if enabled else None

    family: Family[bool] = Family(lambda config: config.merge_duplicates, build)
    monkeypatch.setattr(branch_and_cut, "FAMILIES", (*FAMILIES, family))
    X, y = data()
    result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config="baseline")
    assert asked == [True] and result.stats["total_score"]["calls"] > 0


# ---------------------------------------------------------------- presets


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.startswith("bendoct")])
def test_published_rows_have_nothing_of_ours(preset: str) -> None:
    """No merging, no priorities, no tables, no fractional Benders; path-bound cuts where Algorithm 2 makes them."""
    config = PRESETS[preset]
    assert not config.merge_duplicates and not config.branch_priorities and not config.subtree_bounds.enabled
    assert not config.benders.fractional and not config.path_bound.empty_path and not config.path_bound.candidates
    assert config.warm_start == "cart" and config.polish_warm_start
    names = preset.partition(":")[2]
    techniques = {
        "ec": config.benders.strengthened,
        "sp": config.polishing,
        "eqp": config.equivalent_points.enabled,
        "pbcp": config.path_bound.enabled,
    }
    everything = names.startswith("all")
    for technique, is_on in techniques.items():
        assert is_on == (technique not in names if everything else technique == names)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.startswith("bendoct")])
@pytest.mark.parametrize("backend", ["highs", "gurobi"])
def test_published_rows_are_exact(backend: str, preset: str) -> None:
    """Each gives the optimum."""
    skip_unless_available(backend)
    rng = np.random.default_rng(len(preset))
    for _ in range(4):
        instance = random_instance(rng, max_samples=10, max_features=2, max_depth=2)
        result = accel_oct.solve(
            instance.X,
            instance.y,
            sample_weight=instance.sample_weight,
            max_depth=instance.max_depth,
            leaf_penalty=instance.leaf_penalty,
            solver=backend,
            config=preset,
        )
        dataset = instance.dataset
        best = optimal_value(dataset, instance.max_depth, instance.leaf_price) / dataset.total_weight
        assert result.status == "optimal" and abs(result.objective - best) <= 1e-8


def test_config_must_be_one() -> None:
    """Anything else is named."""
    X, y = data()
    with pytest.raises(InvalidInputError, match="config must be"):
        accel_oct.solve(X, y, max_depth=1, leaf_penalty=0.1, config={"polishing": True})  # type: ignore[arg-type]
    assert isinstance(Config.preset("bendoct:all-ec"), Config)


def test_local_cuts_are_not_compared_with_trees() -> None:
    """They hold within one node; other IMPLIED cuts of a component are compared with known trees."""

    class Compared(Exception):
        pass

    class Comparing:
        def check_cuts(self, author: str, rows: Rows) -> None:
            raise Compared

    row = Rows.single([0], 1.0, upper=0.0)
    for local in (True, False):
        given = Response((Cuts(row, Validity.IMPLIED, local=local),))

        class Answering:
            respond = staticmethod(lambda point, given=given: given)

        checked = CheckedComponent(Answering(), "mine", Comparing())  # type: ignore[arg-type]
        if local:
            assert checked.respond(None) is given  # type: ignore[arg-type]
        else:
            with pytest.raises(Compared):
                checked.respond(None)  # type: ignore[arg-type]
