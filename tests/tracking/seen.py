"""What the events of a run or study tell, read back from the disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablab.tracking.events import ROWS, Event, events_of
from ablab.tracking.tracker import RunCard


@dataclass(frozen=True)
class Seen:
    """The events in the order in which they were told."""

    events: list[Event]

    @classmethod
    def of(cls, folder: Path) -> "Seen":
        return cls(list(events_of(folder)))

    def kind(self, name: str) -> list[Event]:
        return [event for event in self.events if event["event"] == name]

    @property
    def card(self) -> RunCard:
        return RunCard.model_validate(self.kind("opened")[-1]["card"])

    @property
    def summary(self) -> dict[str, Any]:
        return {key: value for event in self.kind("summary") for key, value in event["values"].items()}

    @property
    def keys(self) -> set[str]:
        """The keys of all rows."""
        rows = [event for event in self.events if event["event"] in ROWS]
        return {key for row in rows for key in row.get("values", [row.get("key")])}

    def points(self, key: str, axis: str = "step") -> list[tuple[float, Any]]:
        """The points of a curve, in the order of the rows."""
        rows = [row for row in self.kind("row") if row["axis"] == axis]
        return [(row["x"], row["values"][key]) for row in rows if key in row["values"]]
