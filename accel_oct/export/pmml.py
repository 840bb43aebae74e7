"""The tree as a PMML 4.4 TreeModel."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from accel_oct._version import __version__
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.values import EXACT
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.inputs import Input, condition_texts, inputs_of, unique_name
from accel_oct.export.view import NodeView, TreeView, class_probabilities, codable_view
from accel_oct.support.arrays import FloatArray
from accel_oct.support.files import replacing

_NAMESPACE = "http://www.dmg.org/PMML-4_4"
#: Checked in this order: a boolean is an int in Python.
_LABEL_TYPES = ((bool, "boolean"), (int, "integer"), (float, "double"), (str, "string"))


def to_pmml(model: Any, path: str | Path | None = None) -> str:
    """Return the tree as a PMML 4.4 document; with `path`, also write it to a file.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    path : path, optional
        The file is replaced as a whole.

    Notes
    -----
    Fields are the columns that the tree asks about, by their names, of these types:

    ======================= ========= ==================================================
    column of X             data type content
    ======================= ========= ==================================================
    numeric                 double    numbers
    boolean                 double    0 and 1
    date, time              double    whole microseconds since 1970 (of UTC, if zoned)
    duration                double    whole microseconds
    all others              string    the text that `predict` compares
    ======================= ========= ==================================================

    If the training data have nanoseconds, times and durations are counted in nanoseconds. Evaluators compare doubles,
    even where a field has the type integer, so thresholds of whole numbers must not exceed 2**53: those of times in
    nanoseconds do, those of times in microseconds do not from 1685 to 2255.

    Of the two children of a node, the first has the condition as its predicate and the second one is taken in all other
    cases. With ``missingValueStrategy="none"`` a comparison with a missing value does not hold, and a condition that
    missing values fulfil asks ``isMissing`` too: missing values and unseen categories therefore go to the same side as
    in the model. Categorical fields list no values, since a listed field rejects all others.

    Outputs are ``label`` and ``probability(...)`` of each class; the target field is ``class``. A column that has the
    name of one of these gets a number at its end, and one without a name is called ``column``.

    Raises
    ------
    InvalidInputError
        If a text has a character that XML cannot hold, or a threshold of whole numbers exceeds 2**53.
    """
    tree = codable_view(model, "to_pmml")
    labels = [_value(label) for label in tree.classes]
    probabilities = [f"probability({label})" for label in labels]
    taken = {"class", "label", *probabilities}
    inputs = inputs_of(tree, lambda name: unique_name(name or "column", taken))
    root = ET.Element("PMML", {"xmlns": _NAMESPACE, "version": "4.4"})
    header = _add(root, "Header")
    _add(header, "Application", name="accel_oct", version=__version__)
    label_type = next(name for kind, name in _LABEL_TYPES if isinstance(tree.classes[0], kind))
    _dictionary(root, inputs, labels, label_type)
    found = _add(root, "TreeModel", functionName="classification", missingValueStrategy="none")
    schema = _add(found, "MiningSchema")
    _add(schema, "MiningField", name="class", usageType="target")
    for each in inputs:
        _add(schema, "MiningField", name=each.name, invalidValueTreatment="asIs")
    output = _add(found, "Output")
    _add(output, "OutputField", name="label", optype="categorical", dataType=label_type, feature="predictedValue")
    for name, label in zip(probabilities, labels, strict=True):
        field = _add(output, "OutputField", name=name, optype="continuous", dataType="double", feature="probability")
        field.set("value", label)
    of_column = {each.column: each for each in inputs}
    _node(found, tree, tree.nodes[0], None, of_column, labels, class_probabilities(model))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode", xml_declaration=False)
    document = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
    if path is not None:
        with replacing(path) as file:
            file.write(document)
    return document


def _dictionary(root: ET.Element, inputs: tuple[Input, ...], labels: list[str], label_type: str) -> None:
    dictionary = _add(root, "DataDictionary", numberOfFields=str(len(inputs) + 1))
    target = _add(dictionary, "DataField", name="class", optype="categorical", dataType=label_type)
    for label in labels:
        _add(target, "Value", value=label)
    for each in inputs:
        types = ("categorical", "string") if each.storage == "text" else ("continuous", "double")
        names = {"name": each.name, "displayName": f"{each.name} ({each.meaning})"}
        _add(dictionary, "DataField", **names, optype=types[0], dataType=types[1])


def _node(
    parent: ET.Element,
    tree: TreeView,
    node: NodeView,
    asked: Condition | None,
    inputs: dict[int, Input],
    labels: list[str],
    shares: FloatArray,
) -> None:
    """Add a node and those below it; `asked` is its predicate, None if it takes all that arrive."""
    found = _add(parent, "Node", id=str(node.index), score=labels[node.label], recordCount=repr(node.weight))
    if asked is None:
        _add(found, "True")
    else:
        _predicate(found, inputs[asked.column], asked)
    if node.is_leaf:
        for label, weight, share in zip(labels, node.weights, shares[node.index].tolist(), strict=True):
            _add(found, "ScoreDistribution", value=label, recordCount=repr(weight), probability=repr(share))
        return
    _node(found, tree, tree.nodes[node.right], node.condition, inputs, labels, shares)
    _node(found, tree, tree.nodes[node.left], None, inputs, labels, shares)


def _predicate(parent: ET.Element, given: Input, condition: Condition) -> None:
    if condition.test == "is_missing":
        _add(parent, "SimplePredicate", field=given.name, operator="isMissing")
        return
    if condition.missing:
        parent = _add(parent, "CompoundPredicate", booleanOperator="or")
        _add(parent, "SimplePredicate", field=given.name, operator="isMissing")
    tests = _tests(given, condition)
    if len(tests) > 1:
        any_of = given.storage == "text" and condition.test != "none_of"
        parent = _add(parent, "CompoundPredicate", booleanOperator="or" if any_of else "and")
    for operator, value in tests:
        _add(parent, "SimplePredicate", field=given.name, operator=operator, value=value)


def _tests(given: Input, condition: Condition) -> list[tuple[str, str]]:
    """Return operators and values of the comparisons that a condition makes of a known value."""
    if given.storage == "text":
        operator = "notEqual" if condition.test == "none_of" else "equal"
        return [(operator, _value(text)) for text in condition_texts(condition)]
    if condition.test in ("is_true", "equals"):
        return [("equal", _value(1.0 if condition.test == "is_true" else condition.value))]
    limits = list(zip(("greaterOrEqual", "lessThan"), given.bounds(condition), strict=True))
    if any(isinstance(limit, int) and abs(limit) > EXACT for _, limit in limits):
        raise InvalidInputError(
            f"to_pmml cannot write the condition {shown(condition.text(given.name))}: its threshold exceeds 2**53, and "
            "PMML evaluators compare doubles"
        )
    return [(operator, _value(limit)) for operator, limit in limits if limit is not None]


def _add(parent: ET.Element, tag: str, /, **attributes: str) -> ET.Element:
    for text in attributes.values():
        _check(text)
    return ET.SubElement(parent, tag, attributes)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _check(text: str) -> None:
    """Raise for characters that XML 1.0 cannot hold."""
    for character in text:
        code = ord(character)
        if not (code in (0x9, 0xA, 0xD) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code > 0xFFFF):
            raise InvalidInputError(f"to_pmml cannot write {shown(text)}: XML cannot hold the character {character!r}")
