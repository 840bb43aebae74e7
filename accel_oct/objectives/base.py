"""What an objective is written against.

An objective knows no data. When a solve begins it is bound to the data and says what predictions are worth, in one of
two forms: a sum over the samples (`LinearScore`), which every part of the library maximises as if it were weighted
accuracy, or a ratio of two such sums (`RatioScore`), which takes a sequence of linear ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from accel_oct.data import BinaryDataset, scored_dataset
from accel_oct.data.reads import READS, checked_reads
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree

Amount = TypeVar("Amount", float, FloatArray)

_USUAL_EXPONENT = 400


@dataclass(frozen=True, eq=False)
class LinearScore:
    """``offset + (sum over the samples of what the tree's predictions earn) / norm``; to be maximised.

    Attributes
    ----------
    name : str
    dataset : BinaryDataset
    amounts : float array (n_samples, n_classes) or None
        What predicting each class for each sample earns, not negative; None for its weight where the class is its own.
    norm : float
        Positive.
    offset : float
    reads : set of str
        What rewards depend on, in the words of `accel_oct.constraints.Traits`. A tally takes an objective that reads
        classes, groups and weights, a search over every split one that reads neither features nor their values. By
        default everything is assumed to be read.
    arrays : tuple of str
        Names of arguments that hold one entry per row: these cannot follow the folds of a cross-validation.
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
        """From rewards of either sign: what a sample earns whatever is predicted goes into the offset."""
        least = rewards.min(axis=1)
        amounts = rewards - least[:, None]
        largest = float(amounts.max(initial=0.0))
        offset = math.fsum(least) / norm
        if largest == 0.0:  # nothing to choose: every prediction earns the same
            amounts = np.repeat(dataset.weights[:, None], dataset.n_classes, axis=1)
            return cls(name, dataset, amounts, dataset.total_weight, offset - 1.0, reads, arrays)
        exponent = math.frexp(largest)[1]
        if abs(exponent) > _USUAL_EXPONENT:
            amounts, norm = np.ldexp(amounts, -exponent), math.ldexp(norm, -exponent)
        return cls(name, dataset, amounts, norm, offset, reads, arrays)

    @cached_property
    def rows(self) -> BinaryDataset:
        """What trees are scored on: rows that earn their weight where they are predicted to be of their class."""
        return self.dataset if self.amounts is None else scored_dataset(self.dataset, self.amounts)

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        return self.reported(tree.score(self.rows))

    def reported(self, earned: Amount) -> Amount:
        """The score of trees that earn so much on `rows`; rounded rewards may add up to more than there is."""
        if self.amounts is None:
            return earned / self.norm + self.offset
        capped: Amount = np.minimum(earned, self._most)
        return capped / self.norm + self.offset

    @cached_property
    def _most(self) -> float:
        """What is earned where every prediction is the best one."""
        return math.fsum(self.amounts.max(axis=1)) if self.amounts is not None else self.norm


@dataclass(frozen=True, eq=False)
class RatioScore:
    """``(sum of numerator[i, prediction]) / (sum of denominator[i, prediction])``; to be maximised.

    Attributes
    ----------
    name : str
    dataset : BinaryDataset
    numerator, denominator : float arrays (n_samples, n_classes)
        The sum of the denominators is positive whatever is predicted.
    arrays : tuple of str
        As in `LinearScore`.
    """

    name: str
    dataset: BinaryDataset
    numerator: FloatArray
    denominator: FloatArray
    arrays: tuple[str, ...] = ()

    def parts(self, tree: DecisionTree) -> tuple[float, float]:
        """Numerator and denominator of a tree."""
        rows, predicted = np.arange(self.dataset.n_samples), tree.predictions(self.dataset.X)
        return float(self.numerator[rows, predicted].sum()), float(self.denominator[rows, predicted].sum())

    def value(self, tree: DecisionTree) -> float:
        """The score of a tree, leaf penalties not counted."""
        over, under = self.parts(tree)
        return over / under


Score = LinearScore | RatioScore


class Objective(ABC):
    """What `accel_oct.solve` takes as `objective`."""

    @abstractmethod
    def bind(self, dataset: BinaryDataset) -> Score:
        """What predictions are worth on these data.

        Raises
        ------
        InvalidInputError
            Naming the objective and the argument that does not fit the data.
        """

    @property
    def is_accuracy(self) -> bool:
        """Whether the score is the share of the weight that is classified correctly, on any data."""
        return False

    def on_tally(self) -> Objective:
        """The objective in terms that a tally knows, to be bound to its cells.

        Raises
        ------
        InvalidInputError
            Naming the argument that cannot be told from a tally.
        """
        return self


@dataclass(frozen=True, eq=False)
class Fixed(Objective):
    """An objective that is bound already, for whoever solves on the same data more than once."""

    score: Score

    def bind(self, dataset: BinaryDataset) -> Score:
        return self.score
