"""An evaluator of PMML tree models, written after the specification: three-valued predicates, missing values, scores.

It reads the part of PMML 4.4 that trees need, and raises for every element, attribute and operator beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

_NAMESPACE = "{http://www.dmg.org/PMML-4_4}"
_PARSERS: dict[str, Callable[[str], Any]] = {
    "double": float,
    "integer": int,
    "string": str,
    "boolean": {"true": True, "false": False}.__getitem__,
}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b,
    "notEqual": lambda a, b: a != b,
    "lessThan": lambda a, b: a < b,
    "lessOrEqual": lambda a, b: a <= b,
    "greaterThan": lambda a, b: a > b,
    "greaterOrEqual": lambda a, b: a >= b,
}
_ATTRIBUTES = {
    "PMML": {"version"},
    "Header": set(),
    "Application": {"name", "version"},
    "DataDictionary": {"numberOfFields"},
    "DataField": {"name", "displayName", "optype", "dataType"},
    "Value": {"value"},
    "TreeModel": {"functionName", "missingValueStrategy"},
    "MiningSchema": set(),
    "MiningField": {"name", "usageType", "invalidValueTreatment"},
    "Output": set(),
    "OutputField": {"name", "optype", "dataType", "feature", "value"},
    "Node": {"id", "score", "recordCount"},
    "True": set(),
    "SimplePredicate": {"field", "operator", "value"},
    "CompoundPredicate": {"booleanOperator"},
    "ScoreDistribution": {"value", "recordCount", "probability"},
}
_PREDICATES = ("True", "SimplePredicate", "CompoundPredicate")


class PmmlTree:
    """A document; `evaluate` returns class and probabilities of a row."""

    def __init__(self, text: str) -> None:
        root = ET.fromstring(text)
        for element in root.iter():
            assert element.tag.startswith(_NAMESPACE), element.tag
            assert set(element.attrib) <= _ATTRIBUTES[_tag(element)], element.attrib
        assert root.get("version") == "4.4"
        assert [_tag(child) for child in root] == ["Header", "DataDictionary", "TreeModel"]  # the order of the schema
        dictionary, self._model = root[1], root[2]
        fields = dictionary.findall(f"{_NAMESPACE}DataField")
        assert int(dictionary.attrib["numberOfFields"]) == len(fields)
        self._parse = {field.attrib["name"]: _PARSERS[field.attrib["dataType"]] for field in fields}
        assert len(self._parse) == len(fields)
        assert [_tag(child) for child in self._model] == ["MiningSchema", "Output", "Node"]
        assert self._model.attrib == {"functionName": "classification", "missingValueStrategy": "none"}
        schema = {field.attrib["name"]: field for field in self._model[0]}
        assert list(schema) == list(self._parse)
        targets = [name for name, field in schema.items() if field.get("usageType") == "target"]
        (self._target,) = targets
        self.fields = [name for name in self._parse if name != self._target]
        for field in fields:
            listed = field.findall(f"{_NAMESPACE}Value")
            assert bool(listed) == (field.attrib["name"] == self._target)
            if listed:
                self.classes = [self._parse[self._target](value.attrib["value"]) for value in listed]
        outputs = [field.attrib["feature"] for field in self._model[1]]
        assert outputs == ["predictedValue"] + ["probability"] * len(self.classes)

    def evaluate(self, row: Mapping[str, Any]) -> tuple[Any, list[float]]:
        """Return the class, and the probability of each class, for a value or None per field."""
        assert set(row) == set(self.fields)
        node = self._model[2]
        assert self._holds(node[0], row)
        while True:
            children = node.findall(f"{_NAMESPACE}Node")
            if not children:
                break
            # missingValueStrategy "none": an unknown predicate does not hold.
            node = next(child for child in children if self._holds(child[0], row))
        shares = {
            entry.attrib["value"]: float(entry.attrib["probability"])
            for entry in node.findall(f"{_NAMESPACE}ScoreDistribution")
        }
        parse = self._parse[self._target]
        return parse(node.attrib["score"]), [{parse(k): v for k, v in shares.items()}[c] for c in self.classes]

    def _holds(self, predicate: ET.Element, row: Mapping[str, Any]) -> bool | None:
        """True, False, or None for unknown."""
        tag = _tag(predicate)
        assert tag in _PREDICATES
        if tag == "True":
            return True
        if tag == "CompoundPredicate":
            parts = [self._holds(part, row) for part in predicate]
            assert len(parts) >= 2
            decisive = {"or": True, "and": False}[predicate.attrib["booleanOperator"]]
            return decisive if decisive in parts else None if None in parts else not decisive
        name, operator = predicate.attrib["field"], predicate.attrib["operator"]
        if operator == "isMissing":
            return row[name] is None
        if row[name] is None:
            return None
        return _OPERATORS[operator](row[name], self._parse[name](predicate.attrib["value"]))


def _tag(element: ET.Element) -> str:
    return element.tag.removeprefix(_NAMESPACE)


def evaluate_all(text: str, cells: Mapping[str, Sequence[Any]], n_rows: int) -> list[tuple[Any, list[float]]]:
    """Class and probabilities of each row of columns."""
    tree = PmmlTree(text)
    return [tree.evaluate({name: values[row] for name, values in cells.items()}) for row in range(n_rows)]
