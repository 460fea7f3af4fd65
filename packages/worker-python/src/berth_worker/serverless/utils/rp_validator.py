"""Checks a job's input against a schema: types, required keys, defaults and constraints."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["validate"]


def validate(raw_input: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """
    Returns `{"validated_input": {...}}` with defaults filled in, or `{"errors": [...]}`. Each rule of the
    schema is a dict (or its JSON text) with `type`, `required`, and optionally `default` and `constraints`, a
    function of the value.
    """
    errors = [
        f"Unexpected input. {key} is not a valid input option." for key in raw_input if key not in schema
    ]
    rules_of = {
        key: rules
        for key, rules in ((key, _rules(key, rules, errors)) for key, rules in schema.items())
        if rules is not None
    }
    values = dict(raw_input)
    for key, rules in rules_of.items():
        _fill(key, rules, values, errors)
    for key, rules in rules_of.items():
        _check(key, rules, values, errors)
    return {"errors": errors} if errors else {"validated_input": values}


def _rules(key: str, rules: Any, errors: list[str]) -> dict[str, Any] | None:
    if isinstance(rules, dict):
        return rules
    try:
        parsed = json.loads(rules)
    except (TypeError, ValueError):
        parsed = None
    if isinstance(parsed, dict):
        return parsed
    errors.append(f"Schema error, {key} is not a dictionary.")
    return None


def _fill(key: str, rules: dict[str, Any], values: dict[str, Any], errors: list[str]) -> None:
    """Required keys must be there; others get their default."""
    if "type" not in rules:
        errors.append(f"Schema error, missing type for {key}.")
    if "required" not in rules:
        errors.append(f"{key} is a required input.")
    elif key in values:
        return
    elif rules["required"]:
        errors.append(f"{key} is a required input.")
    elif "default" in rules:
        values[key] = rules["default"]
    else:
        errors.append(f"Schema error, missing default value for {key}.")


def _check(key: str, rules: dict[str, Any], values: dict[str, Any], errors: list[str]) -> None:
    wanted = rules.get("type")
    if key in values and wanted is not None:
        if wanted is float and type(values[key]) in (int, float):
            values[key] = float(values[key])
        is_like_default = "default" in rules and isinstance(values[key], type(rules["default"]))
        if not is_like_default and not _is_instance(values[key], wanted):
            errors.append(f"{key} should be {wanted} type, not {type(values[key])}.")
            return
    constraints = rules.get("constraints")
    if constraints is not None and not constraints(values.get(key)):
        errors.append(f"{key} does not meet the constraints.")


def _is_instance(value: Any, wanted: Any) -> bool:
    try:
        return isinstance(value, wanted)
    except TypeError:
        return True  # Not a type: such a schema cannot be checked.
