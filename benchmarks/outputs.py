"""Write docs/outputs.schema.json, the schemas of what verbs print as JSON: `python -m benchmarks.outputs`."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel

from ablab.tasks.command.result import CommandResult
from ablab.tasks.verbs import VERBS, options_of

PLACE = Path(__file__).parents[1] / "docs" / "outputs.schema.json"


def models() -> Mapping[str, type[BaseModel]]:
    """Return, by verb, the model of what it prints with format=json, where its options name one."""
    named = {verb: options_of(verb).output for verb in VERBS}
    return {verb: _model(dotted) for verb, dotted in named.items() if dotted is not None}


def _model(dotted: str) -> type[BaseModel]:
    module, _, name = dotted.rpartition(".")
    model: type[BaseModel] = getattr(import_module(module), name)
    return model


def text() -> str:
    """Return the content of the file."""
    schemas = {verb: model.model_json_schema(mode="serialization") for verb, model in models().items()}
    schemas["result of a command"] = CommandResult.model_json_schema()  # which is read
    return json.dumps(schemas, indent=1) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
