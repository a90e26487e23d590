"""The part of the stand-in server that keeps workspaces and W&B Reports, which are both views of a project."""

from collections.abc import Mapping
from typing import Any

WHEN = "2026-01-01T00:00:00Z"


class Views:
    """All views by their ids, as they were last sent."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the views of a type: `project-view` is a workspace, `runs` a report."""
        return [view for view in self.known.values() if view["type"] == kind]

    def answer(self, name: str, variables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Answer a query of GraphQL about views and their projects; None if it is about something else."""
        if name == "GetProjects":
            entity = variables["entity"]
            node = {"__typename": "Project", "id": "p", "name": "ablab", "entityName": entity, "createdAt": WHEN}
            edge = {"node": {**node, "isBenchmark": False, "user": None}, "cursor": "c"}
            return {"models": {"pageInfo": {"endCursor": None, "hasNextPage": False}, "edges": [edge]}}
        return {"upsertView": self._upserted(variables)} if name.lower().startswith("upsertview") else None

    def _upserted(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        number = variables.get("id") or f"v{len(self.known)}"
        is_new = number not in self.known
        self.known[number] = dict(variables)
        kept = {key: variables.get(key) for key in ("name", "displayName", "description", "type", "spec")}
        project = {"id": "p", "name": variables["projectName"], "entityName": variables["entityName"]}
        return {"view": {**kept, "id": number, "project": project, "updatedAt": WHEN}, "inserted": is_new}
