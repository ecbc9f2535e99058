"""The published Open Responses schema, read as the compliance suite reads it.

The suite's validators are generated from this same file by a tool that takes `oneOf` as "any of these" and ignores
fields that the schema does not name; null is only what the schema says may be null.
"""
import json
import pathlib
from collections.abc import Iterator

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

FILE = pathlib.Path(__file__).resolve().parents[1] / "schemas" / "openresponses-openapi.json"
DOCUMENT = json.loads(FILE.read_text())
# As many events as the release that the suite belongs to has.
EVENTS = 24


def branch_types(branch: dict) -> list:
    """The values of `type` that a branch of a union stands for; empty when it has none."""
    while "$ref" in branch:
        branch = DOCUMENT["components"]["schemas"][branch["$ref"].rpartition("/")[2]]
    return branch.get("properties", {}).get("type", {}).get("enum", [])


def one_of(validator: Draft202012Validator, branches: list[dict], instance: object, schema: dict) -> Iterator[ValidationError]:
    """Any branch will do. Where `type` says which is meant, only the errors of that one are told."""
    kind = instance.get("type") if isinstance(instance, dict) else None
    meant = [branch for branch in branches if kind is not None and kind in branch_types(branch)]
    if len(meant) == 1:
        yield from validator.descend(instance, meant[0])
    elif isinstance(instance, dict) and all(branch_types(branch) for branch in branches) and not meant:
        yield ValidationError(f"{kind!r} is none of the types {sorted(sum(map(branch_types, branches), []))}")
    elif not any(validator.evolve(schema=branch).is_valid(instance) for branch in meant or branches):
        yield ValidationError(f"{json.dumps(instance)[:120]} fits no branch")


def not_strict(*_: object) -> Iterator[ValidationError]:
    """`additionalProperties` forbids nothing."""
    return iter(())


VALIDATOR = validators.extend(Draft202012Validator, {"oneOf": one_of, "additionalProperties": not_strict})
REGISTRY = Registry().with_resource("urn:open-responses", Resource.from_contents(DOCUMENT, default_specification=DRAFT202012))
UNION = DOCUMENT["paths"]["/responses"]["post"]["responses"]["200"]["content"]["text/event-stream"]["schema"]["oneOf"]
if len(UNION) != EVENTS:
    raise SystemExit(f"the union of events in {FILE.name} has {len(UNION)} members, not {EVENTS}")


def errors(component: str, instance: object) -> list[str]:
    """What is wrong with `instance` as the component of that name."""
    return found({"$ref": f"urn:open-responses#/components/schemas/{component}"}, instance)


def event_errors(event: object, websocket: bool = False) -> list[str]:
    """What is wrong with a streaming event. On a WebSocket the error envelope is one more member of the union."""
    if websocket and isinstance(event, dict) and event.get("type") == "error" and "status" in event:
        return errors("WebSocketErrorEvent", event)
    kind = event.get("type") if isinstance(event, dict) else None
    meant = [branch for branch in UNION if kind in branch_types(branch)]
    if not meant:
        return [f"the event type {kind!r} is not in the union"]
    return [f"{kind}: {error}" for error in errors(meant[0]["$ref"].rpartition("/")[2], event)]


def found(schema: dict, instance: object) -> list[str]:
    said = []
    for error in VALIDATOR(schema, registry=REGISTRY).iter_errors(instance):
        # An optional value that is null, or else what is deepest: the outer error only says that no branch fits.
        while error.context:
            error = max((inner for inner in error.context if inner.validator_value != "null"), key=lambda inner: len(inner.absolute_path),
                        default=error.context[0])
        said.append(f"{'.'.join(map(str, error.absolute_path)) or 'body'}: {error.message[:200]}")
    return said
