"""Documents beside the published schemas of their formats."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import referencing

from tools.formats import findings_schemas, model_schemas, result_schemas, study_schemas

__all__ = ["SCHEMAS", "schema_problems"]

SCHEMAS: dict[str, dict[str, Any]] = {
    **model_schemas(),
    **study_schemas(),
    **result_schemas(),
    **findings_schemas(),
}
_REGISTRY: Any = referencing.Registry().with_contents((s["$id"], s) for s in SCHEMAS.values())


def schema_problems(document: dict[str, Any]) -> list[str]:
    """Return what the schema of its format has against a document, as JSON has it."""
    validator = jsonschema.Draft202012Validator(SCHEMAS[document["format"]], registry=_REGISTRY)
    return [error.message for error in validator.iter_errors(json.loads(json.dumps(document)))]
