"""The tree as an ONNX model that takes the cells of the user's table.

Comparisons turn the cells into answers of 0 and 1, a TreeEnsembleRegressor finds the leaf by the answers, and two
tables give class and probabilities of the leaf. Numbers are compared as doubles: a tree ensemble on the numbers would
compare them in single precision. A TreeEnsembleClassifier would predict the class with the largest probability, which
under constraints and costs is not always the class of the leaf.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct._version import __version__
from accel_oct.encoding.conditions import Condition
from accel_oct.errors import AccelOctError, InvalidInputError, shown
from accel_oct.export.inputs import MISSING_WHOLE, Input, as_table, condition_texts, inputs_of, unique_name
from accel_oct.export.view import TreeView, class_probabilities, codable_view
from accel_oct.support.files import replacing

#: The oldest operator sets and file format with all operators that are used: old runtimes read them too.
_OPSET, _ML_OPSET, _IR_VERSION = 15, 2, 8
_OUTPUTS = ("label", "probabilities")
_TYPES = {"number": "DOUBLE", "whole": "INT64", "text": "STRING"}
_LABEL_TYPES: dict[type, tuple[str, Any]] = {
    bool: ("BOOL", np.bool_),
    int: ("INT64", np.int64),
    float: ("DOUBLE", np.float64),
    str: ("STRING", object),
}


def to_onnx(model: Any, path: str | Path | None = None, *, missing_text: str = "") -> bytes:
    """Return the tree as an ONNX model; with `path`, also write it to a file.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    path : path, optional
        The file is replaced as a whole.
    missing_text : str
        Text that stands for a missing cell in columns of text: ONNX has no missing text. The tree must not ask about a
        category of this name.

    Notes
    -----
    Inputs are the columns that the tree asks about, by their names, each of shape (rows, 1):

    ================================== ======== =========================================== ==============
    column of X                        type     content                                     missing
    ================================== ======== =========================================== ==============
    numeric                            double   numbers                                     NaN
    numeric, thresholds beyond 2**53   int64    whole numbers                               -2**63
    boolean                            double   0 and 1                                     NaN
    date, time                         int64    microseconds since 1970 (of UTC, if zoned)  -2**63
    duration                           int64    microseconds                                -2**63
    all others                         string   the text that `predict` compares            `missing_text`
    ================================== ======== =========================================== ==============

    If the training data have nanoseconds, times and durations are counted in nanoseconds. NumPy stores -2**63 for NaT.
    The ``doc_string`` of an input has its content. A tree without a split has one input, whose values are ignored.
    `onnx_inputs` returns the inputs of a table.

    Outputs are ``label``, of shape (rows,) and the type of the classes, and ``probabilities``, doubles of shape
    (rows, classes) in the order of ``classes_``. A column that has the name of an output gets a number at its end, and
    one without a name is called ``column``. The model needs version 15 of the operators and version 2 of ai.onnx.ml.

    Raises
    ------
    AccelOctError
        If the package onnx is not installed: ``pip install 'accel-oct[onnx]'``.
    InvalidInputError
        If a text has a lone surrogate or is `missing_text`, or a threshold exceeds 64 bits.
    """
    onnx = _package()
    tree = codable_view(model, "to_onnx")
    inputs = _inputs(tree)
    _check_texts(inputs, tree, missing_text)
    graph = _Graph(onnx, missing_text, {*_OUTPUTS, *(each.name for each in inputs)})
    leaves = [node for node in tree.nodes if node.is_leaf]
    type_name, dtype = _LABEL_TYPES[type(tree.classes[0])]
    leaf = graph.leaf(tree, inputs) if inputs else graph.only_leaf(_unused(tree))
    graph.table(type_name, np.array([tree.classes[node.label] for node in leaves], dtype=dtype), leaf, "label")
    shares = class_probabilities(model)[[node.index for node in leaves]]
    graph.table("DOUBLE", shares, leaf, "probabilities")
    written: bytes = graph.model(type_name, list(tree.classes)).SerializeToString()
    if path is not None:
        with replacing(path, binary=True) as file:
            file.write(written)
    return written


def onnx_inputs(model: Any, X: Any, *, missing_text: str = "") -> dict[str, NDArray[Any]]:
    """Return a table as inputs of the model that `to_onnx` writes: ``session.run(None, onnx_inputs(model, X))``.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    X : data frame or array-like
        With the columns of `fit`.
    missing_text : str
        As in `to_onnx`. No cell may hold it.
    """
    tree, table = codable_view(model, "onnx_inputs"), as_table(model, X)
    found: dict[str, NDArray[Any]] = {}
    for each in _inputs(tree):
        cells = each.cells(table)
        if each.storage == "text":
            if missing_text in cells.tolist():
                raise InvalidInputError(
                    f"X holds {missing_text!r} in column {shown(each.name)}, which stands for a missing cell; "
                    "give another missing_text"
                )
            cells[cells == None] = missing_text  # noqa: E711 - cell by cell
        found[each.name] = cells[:, None]
    return found or {_unused(tree): np.zeros((len(table), 1))}


def _package() -> Any:
    try:
        import onnx
    except ImportError:
        raise AccelOctError("to_onnx needs onnx: pip install 'accel-oct[onnx]'") from None
    return onnx


def _inputs(tree: TreeView) -> tuple[Input, ...]:
    taken = set(_OUTPUTS)
    return inputs_of(tree, lambda name: unique_name(name or "column", taken))


def _unused(tree: TreeView) -> str:
    """Return the name of the input of a tree without a split."""
    return unique_name(tree.column_names[0] or "column", set(_OUTPUTS))


def _check_texts(inputs: tuple[Input, ...], tree: TreeView, missing_text: str) -> None:
    if not isinstance(missing_text, str):
        raise InvalidInputError(f"missing_text must be a text, got {shown(missing_text)}")
    asked = {text for each in inputs for condition in each.conditions for text in condition_texts(condition)}
    if missing_text in asked:
        raise InvalidInputError(f"missing_text is a category that the tree asks about: {shown(missing_text)}")
    labels = [label for label in tree.classes if isinstance(label, str)]
    for text in (*asked, *labels, *(each.name for each in inputs), missing_text):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInputError(f"to_onnx cannot write {shown(text)}, which has a lone surrogate") from None
    if any(isinstance(label, int) and not -(2**63) <= label < 2**63 for label in tree.classes):
        raise InvalidInputError("to_onnx cannot write classes that are whole numbers beyond 64 bits with a sign")


class _Graph:
    """An ONNX graph under construction; values are known by name."""

    def __init__(self, onnx: Any, missing_text: str, taken: set[str]) -> None:
        self._onnx, self._missing_text, self._taken = onnx, missing_text, taken
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []

    def leaf(self, tree: TreeView, inputs: tuple[Input, ...]) -> str:
        """Add inputs, conditions and tree; return the value with the position of each row's leaf among the leaves."""
        answers: dict[Condition, str] = {}
        for each in inputs:
            self._input(each.name, _TYPES[each.storage], f"{each.meaning}; {self._mark(each)} is missing")
            for condition in each.conditions:
                answers[condition] = self._answer(each, condition)
        features = self._node("Concat", [*answers.values()], axis=1)
        number = self._node("TreeEnsembleRegressor", [features], domain="ai.onnx.ml", **_ensemble(tree, list(answers)))
        flat = self._node("Reshape", [number, self._constant("INT64", np.array([-1]))])
        return self._cast(flat, "INT64")

    def only_leaf(self, name: str) -> str:
        """Add an input of which only the number of rows is used; return the position 0 for each."""
        self._taken.add(name)
        self._input(name, "DOUBLE", "ignored")
        shape = self._node("Shape", [name], end=1)
        return self._node("ConstantOfShape", [shape], value=self._tensor("zero", "INT64", np.array([0])))

    def table(self, type_name: str, rows: NDArray[Any], places: str, output: str) -> None:
        """Add an output: the row of a table at each place."""
        self._nodes.append(
            self._onnx.helper.make_node("Gather", [self._constant(type_name, rows), places], [output], axis=0)
        )

    def model(self, label_type: str, classes: list[Any]) -> Any:
        helper = self._onnx.helper
        outputs = [
            helper.make_tensor_value_info("label", self._type(label_type), ["rows"]),
            helper.make_tensor_value_info("probabilities", self._type("DOUBLE"), ["rows", len(classes)]),
        ]
        graph = helper.make_graph(self._nodes, "optimal_tree", self._inputs, outputs, self._constants)
        model = helper.make_model(
            graph,
            producer_name="accel_oct",
            producer_version=__version__,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)],
        )
        helper.set_model_props(model, {"classes": json.dumps(classes), "missing_text": self._missing_text})
        self._onnx.checker.check_model(model)
        return model

    def _answer(self, given: Input, condition: Condition) -> str:
        """Return floats: 1 where a condition holds, 0 elsewhere."""
        if given.storage == "text":
            return self._lookup(given, condition)
        name = given.name
        if condition.test == "is_missing":
            return self._cast(self._missing(given), "FLOAT")
        tests = []
        low, high = given.bounds(condition)
        if condition.test in ("is_true", "equals"):
            value = 1.0 if condition.test == "is_true" else condition.value
            tests.append(self._node("Equal", [name, self._number(given, value)]))
        if low is not None:
            tests.append(self._node("GreaterOrEqual", [name, self._number(given, low)]))
        if high is not None:
            tests.append(self._node("Less", [name, self._number(given, high)]))
        if given.storage == "whole":  # the mark of a missing cell is below all limits
            tests.append(self._node("Not", [self._missing(given)]))
        held = tests[0]
        for test in tests[1:]:
            held = self._node("And", [held, test])
        return self._cast(self._node("Or", [held, self._missing(given)]) if condition.missing else held, "FLOAT")

    def _missing(self, given: Input) -> str:
        if given.storage == "number":
            return self._node("IsNaN", [given.name])
        return self._node("Equal", [given.name, self._number(given, MISSING_WHOLE)])

    def _number(self, given: Input, value: Any) -> str:
        dtype = np.float64 if given.storage == "number" else np.int64
        return self._constant(_TYPES[given.storage], np.array(value, dtype=dtype))

    def _lookup(self, given: Input, condition: Condition) -> str:
        """Look the text up among those with an answer of their own; all others have the same answer."""
        others = condition.test == "none_of"
        answers = dict.fromkeys(condition_texts(condition), not others)
        answers[self._missing_text] = condition.holds_if_missing
        return self._node(
            "LabelEncoder",
            [given.name],
            domain="ai.onnx.ml",
            keys_strings=list(answers),
            values_floats=[float(answer) for answer in answers.values()],
            default_float=float(others),
        )

    def _mark(self, given: Input) -> str:
        if given.storage == "text":
            return json.dumps(self._missing_text)
        return "NaN" if given.storage == "number" else str(MISSING_WHOLE)

    def _input(self, name: str, type_name: str, meaning: str) -> None:
        helper = self._onnx.helper
        self._inputs.append(helper.make_tensor_value_info(name, self._type(type_name), ["rows", 1], meaning))

    def _node(self, operator: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
        output = unique_name(operator.lower(), self._taken)
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def _cast(self, value: str, type_name: str) -> str:
        return self._node("Cast", [value], to=self._type(type_name))

    def _constant(self, type_name: str, values: NDArray[Any]) -> str:
        name = unique_name("constant", self._taken)
        self._constants.append(self._tensor(name, type_name, values))
        return name

    def _tensor(self, name: str, type_name: str, values: NDArray[Any]) -> Any:
        flat = [value.encode("utf-8") if isinstance(value, str) else value for value in values.ravel().tolist()]
        return self._onnx.helper.make_tensor(name, self._type(type_name), values.shape, flat)

    def _type(self, name: str) -> int:
        return int(getattr(self._onnx.TensorProto, name))


def _ensemble(tree: TreeView, conditions: list[Condition]) -> dict[str, Any]:
    """Return the attributes of a TreeEnsembleRegressor over answers; its value is the position among the leaves."""
    feature = {condition: place for place, condition in enumerate(conditions)}
    leaves = [node.index for node in tree.nodes if node.is_leaf]
    nodes = tree.nodes
    return {
        "n_targets": 1,
        "nodes_treeids": [0] * len(nodes),
        "nodes_nodeids": [node.index for node in nodes],
        "nodes_featureids": [0 if node.condition is None else feature[node.condition] for node in nodes],
        "nodes_modes": ["LEAF" if node.is_leaf else "BRANCH_LEQ" for node in nodes],
        "nodes_values": [0.0 if node.is_leaf else 0.5 for node in nodes],
        "nodes_truenodeids": [max(node.left, 0) for node in nodes],
        "nodes_falsenodeids": [max(node.right, 0) for node in nodes],
        "target_treeids": [0] * len(leaves),
        "target_nodeids": leaves,
        "target_ids": [0] * len(leaves),
        "target_weights": [float(place) for place in range(len(leaves))],
    }
