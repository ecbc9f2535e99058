"""Checks what the smoke script was answered against the published schema. usage: bodies.py FOLDER

Each file of the folder is one answer: a line with method, path and status, then the body. The component comes from the
schema's own table of paths; tests/cases/schema_check.py --relaxed lists what is not held against a body.
"""
import json
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "cases"))
import schema_check  # noqa: E402

DOCUMENT = json.loads((TESTS / "schemas" / "openai-openapi.json").read_text())


class Bodies(schema_check.Schemas):
    """The schemas that the cases use, and those of all paths."""

    def __init__(self) -> None:
        super().__init__()
        todo = ["Error", *filter(None, (component(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods))]
        while todo:
            name = todo.pop()
            if name not in self.out:
                self.out[name] = self._t(self.src[name], name, todo)
        self._relax()

    def of(self, method: str, path: str, status: int, body: str) -> list[str]:
        """What is wrong with an answer."""
        if body.startswith("event: "):
            events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
            return [error for event in events for error in self.event_errors(event)] or self.order_errors(events)
        try:
            value = json.loads(body)
        except ValueError:
            return [f"the body is no JSON: {body[:80]!r}"]
        if status >= 400:
            # All four keys are there, whatever they hold: the schema says so of `error` alone.
            return self.errors("Error", value.get("error"))
        template = next((known for known in DOCUMENT["paths"] if matches(known, path) and method.lower() in DOCUMENT["paths"][known]), None)
        if template is None:
            return [f"the schema has no {method} {path}"]
        if name := component(method, template):
            return self.errors(name, value)
        # Only deletions have no body in the schema. Clients of every kind look at these three.
        return [] if value.keys() == {"id", "object", "deleted"} else [f"a deletion answers {sorted(value)}"]

    @staticmethod
    def order_errors(events: list[dict]) -> list[str]:
        numbers = [event["sequence_number"] for event in events]
        return [] if numbers == list(range(len(events))) else [f"the events are numbered {numbers}"]


def component(method: str, path: str) -> str | None:
    """The name of what a path answers, when it is a component."""
    operation = DOCUMENT["paths"][path][method.lower()]
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    reference = content.get("schema", {}).get("$ref")
    return reference.rpartition("/")[2] if reference else None


def matches(template: str, path: str) -> bool:
    """Whether a path is one of the template's. Fixed words win: they stand first or have another method."""
    return re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path.partition("?")[0]) is not None


def main(folder: pathlib.Path) -> int:
    schemas, passed, failed = Bodies(), 0, 0
    for file in sorted(folder.iterdir()):
        head, _, body = file.read_text().partition("\n")
        method, path, status = head.split(" ")
        # An unknown path has no schema of its own, but an error it must be.
        errors = schemas.of(method, path, int(status), body)
        passed, failed = passed + (not errors), failed + bool(errors)
        for error in errors[:10]:
            print(f"FAILED the body of {head}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
