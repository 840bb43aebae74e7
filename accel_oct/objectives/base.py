"""The interface of objectives.

An objective holds no data. At the start of a solve it is bound to the data, and gives the score of predictions in one
of two forms: a sum over the samples (`LinearScore`), which the library maximises like weighted accuracy, or a ratio of
two such sums (`RatioScore`), which is maximised by a sequence of linear ones. A third form is no sum: in a
`StrictScore` a right prediction is not enough for a row to count, and cuts of its own define it in the master.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from accel_oct.data import BinaryDataset, ScoredDataset, scored_dataset
from accel_oct.data.reads import READS, checked_reads
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Component, Master
from accel_oct.support.arrays import BoolArray, FloatArray
from accel_oct.tree import DecisionTree

Amount = TypeVar("Amount", float, FloatArray)

_USUAL_EXPONENT = 400


@dataclass(frozen=True, eq=False)
class LinearScore:
    """``offset + (sum over the samples of the rewards of their predictions) / norm``; to be maximised.

    Attributes
    ----------
    name : str
    dataset : BinaryDataset
    amounts : float array (n_samples, n_classes) or None
        Reward of predicting each class for each sample, not negative. None: the weight for the correct class, else 0.
    norm : float
        Positive.
    offset : float
    reads : set of str
        Inputs of the rewards, as in `accel_oct.constraints.Traits`. A tally supports objectives that read classes,
        groups and weights; a search over every split, those that read neither features nor their values. The default
        is all inputs.
    arrays : tuple of str
        Names of arguments with one entry per row, which cannot be split into the folds of a cross-validation.
    """

    name: str
    dataset: BinaryDataset
    amounts: FloatArray | None
    norm: float
    offset: float = 0.0
    reads: Set[str] = READS
    arrays: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", checked_reads(self.reads, self.name))

    @classmethod
    def of(
        cls,
        name: str,
        dataset: BinaryDataset,
        rewards: FloatArray,
        norm: float,
        reads: Set[str] = READS,
        arrays: tuple[str, ...] = (),
    ) -> LinearScore:
        """Return the score for rewards of any sign; the least reward of every sample becomes part of the offset."""
        least = rewards.min(axis=1)
        amounts = rewards - least[:, None]
        largest = float(amounts.max(initial=0.0))
        offset = math.fsum(least) / norm
        if largest == 0.0:  # all predictions have the same reward
            amounts = np.repeat(dataset.weights[:, None], dataset.n_classes, axis=1)
            return cls(name, dataset, amounts, dataset.total_weight, offset - 1.0, reads, arrays)
        exponent = math.frexp(largest)[1]
        if abs(exponent) > _USUAL_EXPONENT:
            amounts, norm = np.ldexp(amounts, -exponent), math.ldexp(norm, -exponent)
        return cls(name, dataset, amounts, norm, offset, reads, arrays)

    @cached_property
    def rows(self) -> BinaryDataset:
        """The rows on which trees are scored: each has its weight as reward for the prediction of its class."""
        return self.dataset if self.amounts is None else scored_dataset(self.dataset, self.amounts)

    @cached_property
    def gains(self) -> FloatArray:
        """What each prediction earns for each sample on `rows`, (n_samples, n_classes)."""
        rows, gains = self.rows, np.zeros((self.dataset.n_samples, self.dataset.n_classes))
        source = rows.source if isinstance(rows, ScoredDataset) else np.arange(self.dataset.n_samples)
        gains[source, rows.y] = rows.weights
        return gains

    def value(self, tree: DecisionTree) -> float:
        """Return the score of a tree without leaf penalties."""
        return self.reported(tree.score(self.rows))

    def reported(self, earned: Amount) -> Amount:
        """Return the score for rewards on `rows`, capped at the best possible score: rounded rewards may exceed it."""
        if self.amounts is None:
            return earned / self.norm + self.offset
        capped: Amount = np.minimum(earned, self._most)
        return capped / self.norm + self.offset

    @cached_property
    def _most(self) -> float:
        """Sum of the largest rewards of all samples."""
        return math.fsum(self.amounts.max(axis=1)) if self.amounts is not None else self.norm


@dataclass(frozen=True, eq=False)
class RatioScore:
    """``(sum of numerator[i, prediction]) / (sum of denominator[i, prediction])``; to be maximised.

    Attributes
    ----------
    name : str
    dataset : BinaryDataset
    numerator, denominator : float arrays (n_samples, n_classes)
        The sum of the denominators is positive for all predictions.
    arrays : tuple of str
        As in `LinearScore`.
    """

    kind: ClassVar[str] = "a ratio"
    name: str
    dataset: BinaryDataset
    numerator: FloatArray
    denominator: FloatArray
    arrays: tuple[str, ...] = ()

    def parts(self, tree: DecisionTree) -> tuple[float, float]:
        """Return numerator and denominator of a tree."""
        rows, predicted = np.arange(self.dataset.n_samples), tree.predictions(self.dataset.X)
        return float(self.numerator[rows, predicted].sum()), float(self.denominator[rows, predicted].sum())

    def value(self, tree: DecisionTree) -> float:
        """Return the score of a tree without leaf penalties."""
        over, under = self.parts(tree)
        return over / under


class StrictScore(ABC):
    """Share of the weight of the rows that *count*, where a row counts only if its prediction is right; maximised.

    When a row counts is up to the subclass: it may depend on the whole tree. So the score is no sum over predictions,
    but at most one, `relaxed`. Tables and lists of trees compute bounds with `relaxed`, every tree is scored by
    `counted`, and the cuts of `cuts` define the score in the master.

    Parameters
    ----------
    name : str
    dataset : BinaryDataset
        The user's data; constraints refer to its rows.
    relaxed : LinearScore
        Accuracy on some rows with the features and classes of `dataset`, one per row that may count. These rows need
        not be those of `dataset`: other features at the same class may give a better bound.
    arrays : tuple of str
        As in `LinearScore`.
    """

    kind: ClassVar[str] = "which is no sum over predictions"

    def __init__(self, name: str, dataset: BinaryDataset, relaxed: LinearScore, arrays: tuple[str, ...] = ()) -> None:
        if relaxed.amounts is not None or relaxed.dataset.X.shape[1] != dataset.n_features:
            raise InvalidInputError(f"objective: {name}: relaxed must be the accuracy on rows with the same features")
        self.name, self.dataset, self.relaxed, self.arrays = name, dataset, relaxed, arrays

    @abstractmethod
    def counted(self, tree: DecisionTree) -> BoolArray:
        """Return which of the rows of `relaxed` count; the definition. Only rows that are predicted right may count."""

    def cuts(self, master: Master) -> Component | None:
        """Return the component with the cuts that bound theta by `counted`; its cuts may be REQUIRED.

        theta of row i, ``master.theta.index[i]``, must be at most one if the row counts for the tree, and at most zero
        if it does not. `accel_oct.cuts` has functions that build such rows. None, or a component that leaves a
        candidate with a larger theta, is correct too: the candidate is then cut off by a row about the whole tree,
        which is slow.
        """
        return None

    @property
    def rows(self) -> BinaryDataset:
        """The rows that count or not."""
        return self.relaxed.rows

    @property
    def norm(self) -> float:
        """Divisor of scores."""
        return self.relaxed.norm

    @property
    def amounts(self) -> None:
        """Rewards by prediction: there are none."""
        return None

    def checked_counted(self, tree: DecisionTree) -> BoolArray:
        """Return `counted`, or raise InvalidInputError if it is not as declared."""
        rows, counted = self.rows, np.asarray(self.counted(tree))
        if counted.dtype != np.bool_ or counted.shape != (rows.n_samples,):
            raise InvalidInputError(f"objective: {self.name}: `counted` must return one bool per row of `relaxed`")
        if np.any(counted & (tree.predictions(rows.X) != rows.y)):
            raise InvalidInputError(f"objective: {self.name}: `counted` counts a row that a tree predicts wrong")
        return counted

    def value(self, tree: DecisionTree) -> float:
        """Return the score of a tree without leaf penalties."""
        return self.reported(float(self.rows.weights[self.checked_counted(tree)].sum()))

    def reported(self, earned: Amount) -> Amount:
        """Return the score for the weight of the rows that count."""
        return self.relaxed.reported(earned)


Score = LinearScore | RatioScore | StrictScore


class Objective(ABC):
    """An objective of `accel_oct.solve`."""

    @abstractmethod
    def bind(self, dataset: BinaryDataset) -> Score:
        """Return the score of predictions on these data.

        Raises
        ------
        InvalidInputError
            Naming the objective and the argument that does not fit the data.
        """

    @property
    def is_accuracy(self) -> bool:
        """Whether the score is the share of the weight that is classified correctly."""
        return False

    @property
    def needs_chosen_splits(self) -> bool:
        """Whether the objective is defined on the features of an encoder, so that no other splits can be searched."""
        return False

    @property
    def depends_on_thresholds(self) -> bool:
        """Whether the score depends on where a threshold lies between two neighbouring values of the data.

        If it does, no encoder has every split of a table.
        """
        return False

    def on_tally(self) -> Objective:
        """Return the objective for a tally, to be bound to its cells.

        Raises
        ------
        InvalidInputError
            Naming the argument that needs rows.
        """
        return self


@dataclass(frozen=True, eq=False)
class Fixed(Objective):
    """An objective that is already bound, for several solves on the same data."""

    score: Score

    def bind(self, dataset: BinaryDataset) -> Score:
        return self.score
