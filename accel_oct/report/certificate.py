"""The section on a certificate of the proof."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

import accel_oct_checker
from accel_oct.certificates import Claim
from accel_oct.certificates.document import as_dict
from accel_oct.errors import InvalidInputError, shown
from accel_oct.report.markup import Content, Markup, count, decimals, element, section, terms
from accel_oct.support.files import as_path, check_regular

#: Largest certificate, packed and unpacked, that a report reads.
MAX_BYTES = 64 << 20


def certificate_section(model: Any, X: Any, y: Any, sample_weight: Any, path: str | Path | None) -> Markup | None:
    """Return what a certificate states about the model and how to check it; None without a certificate.

    Raises
    ------
    InvalidInputError
        If the file is no certificate, or its claim is not about this model and these data.
    """
    if path is None:
        return None
    if not hasattr(model, "_claim"):
        raise InvalidInputError(f"certificate is for an OptimalTreeClassifier, and this is a {type(model).__name__}")
    place = as_path(path, "certificate")
    content, fingerprint = _read(place)
    claim = _matching(content, model, X, y, sample_weight)
    lemmas = content.get("lemmas")
    if not isinstance(lemmas, list) or not lemmas:
        raise InvalidInputError(f"certificate {_named(place)} has no lemmas, so it proves nothing")
    pairs: list[tuple[str, Content]] = [
        ("Claim", _sentence(claim, content["problem"], model)),
        ("File", [element("bdi", place.name), f", {count(len(lemmas), 'lemma')}"]),
        ("Its SHA-256", element("code", fingerprint)),
        ("Fingerprint of its data", element("code", claim.fingerprint)),
    ]
    weights = "" if claim.weight is None else f", the weights in {shown(claim.weight)}"
    binary = all(column.kind == "binary" for column in claim.columns)
    data = (
        f"data.csv stands for the table that the certificate is about: CSV with {'the binary features, ' * binary}the "
        f"classes in {shown(claim.target)}{weights}."
    )
    file = shlex.quote(place.name)
    return section(
        "certificate",
        "Certificate",
        element(
            "p",
            "A certificate is a file with the proof. This report compared its claim with the tree, the problem and the "
            "data of this page; a program that shares no code with the solver checks the proof:",
        ),
        element("pre", f"python accel_oct_checker.py {file} data.csv\naccel-oct check {file} data.csv --proof"),
        element("p", data, class_="quiet"),
        terms(pairs, "pairs"),
    )


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a certificate and the SHA-256 of the file."""
    name = _named(path)
    try:
        size = check_regular(path, "certificate").stat().st_size
        if size > MAX_BYTES:
            raise InvalidInputError(
                f"certificate {name} has {size} bytes, more than the {MAX_BYTES} that a report reads"
            )
        content = accel_oct_checker.read_certificate(str(path), MAX_BYTES)
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise InvalidInputError(f"cannot read certificate {name}: {error.strerror or error}") from None
    except (accel_oct_checker.Malformed, accel_oct_checker.LimitReached) as error:
        raise InvalidInputError(f"certificate: {error}") from None
    except MemoryError:
        raise InvalidInputError(f"certificate {name} does not fit into the memory") from None
    return content, digest.hexdigest()


def _matching(content: dict[str, Any], model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    """Return the claim that the model is optimal; refuse a certificate that states another one."""
    data, problem, stated = (_part(content, name) for name in ("data", "problem", "claim"))
    target, weight = data.get("target"), data.get("weight")
    if not isinstance(target, str) or not isinstance(weight, str | None):
        raise InvalidInputError("certificate: data must name the columns of classes and weights")
    claim: Claim = model._claim(X, y, sample_weight).named(target, weight)
    own = as_dict(claim, {})
    for key, others in (("columns", "columns"), ("classes", "classes"), ("weight", "weights"), ("sha256", "data")):
        if data.get(key) != own["data"].get(key):
            fingerprint = f", with the fingerprint {shown(data.get(key))}" if key == "sha256" else ""
            raise InvalidInputError(f"certificate is about other {others} than those of this report{fingerprint}")
    _same_problem(problem, own["problem"])
    if stated.get("tree") != own["claim"]["tree"]:
        raise InvalidInputError("certificate is about another tree than the model's")
    if stated.get("cost") != own["claim"]["cost"]:
        raise InvalidInputError(
            f"certificate states the cost {shown(stated.get('cost'))}, and the model's tree costs {claim.cost}"
        )
    return claim


def _same_problem(stated: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse a problem that differs from the model's in depth, leaf price or constraints."""
    try:
        price = str(accel_oct_checker.fraction(stated.get("leaf_price"), "leaf_price"))
    except accel_oct_checker.Malformed as error:
        raise InvalidInputError(f"certificate: {error}") from None
    names = {"depth": "depth limit", "leaf_price": "leaf price, which leaf_penalty gives,"}
    for key in sorted({*stated, *own}):
        found, expected = price if key == "leaf_price" else stated.get(key), own.get(key)
        absent = key != "depth" and not found and not expected  # 0 and no entry are the same
        if isinstance(found, bool | float) or (found != expected and not absent):
            raise InvalidInputError(
                f"certificate is about another problem: its {names.get(key, key)} is {shown(found)}, and the "
                f"model's is {shown(expected)}"
            )


def _part(content: dict[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name)
    if not isinstance(found, dict):
        raise InvalidInputError(f"certificate: {name} must be an object")
    return found


def _sentence(claim: Claim, problem: dict[str, Any], model: Any) -> str:
    depth = "of any depth" if claim.max_depth is None else f"of depth at most {claim.max_depth}"
    limited = any(value for key, value in problem.items() if key not in ("depth", "leaf_price"))
    rule = " that satisfy its constraints" if limited else ""
    columns = len({column.name for column in claim.columns})
    return (
        f"Of all trees {depth} over {'all splits of ' if claim.ranks.max(initial=0) > 1 else ''}"
        f"{count(columns, 'column')}{rule}, none has a larger objective than this tree: {decimals(model.objective_)}."
    )


def _named(path: Path) -> str:
    return shown(str(path))
