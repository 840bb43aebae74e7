"""What the script of the page needs to explain a typed row: probabilities of nodes, and what each leaf demands."""

from __future__ import annotations

from typing import Any

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.scales import NANOSECONDS
from accel_oct.reasons.changes import ColumnUnit, Demand, NewValue, Routes
from accel_oct.report.row_form import condition_data, number_text
from accel_oct.tree.probabilities import node_probabilities


def explanation_data(model: Any) -> dict[str, Any] | None:
    """Return plain values; None with an encoder of another library."""
    if not isinstance(model.encoder_, BinaryEncoder):
        return None
    routes = Routes(model.tree_, model.encoder_, model.spreads_)
    return {
        "probabilities": node_probabilities(model.tree_, model.smoothing_).tolist(),
        "units": {str(column): _unit(unit) for column, unit in routes.units.items()},
        "routes": [
            {"leaf": route.leaf, "label": route.label, "demands": [_demand(demand) for demand in route.demands]}
            for route in routes.routes
        ],
    }


def _per(unit: ColumnUnit) -> int | None:
    """Return the unit of a measured column, in nanoseconds or positions, as in conditions of the page."""
    return None if unit.scale is None else NANOSECONDS.get(unit.scale.unit, 1)


def _unit(unit: ColumnUnit) -> dict[str, Any] | None:
    if unit.spread is None:
        return None
    per = _per(unit)
    return {"spread": unit.spread.spread * (per or 1), "middle": number_text(unit.spread.middle, per)}


def _demand(demand: Demand) -> dict[str, Any]:
    per = _per(demand.unit)
    return {
        "column": demand.unit.column,
        "asked": [[condition_data(condition), answer] for condition, answer in demand.asked],
        "choices": [[_number(choice, per), choice.text] for choice in demand.choices],
    }


def _number(choice: NewValue, per: int | None) -> str:
    return choice.number if isinstance(choice.number, str) else str(number_text(choice.number, per))
