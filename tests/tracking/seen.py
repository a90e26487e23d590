"""A W&B run, read back from the disk."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wandb


@dataclass(frozen=True)
class Seen:
    """An offline run as `wandb leet` reads it."""

    records: list[dict[str, Any]]

    @classmethod
    def of(cls, run: Path) -> "Seen":
        (folder,) = (run / "wandb").glob("offline-run-*")
        return cls.of_folder(folder)

    @classmethod
    def of_folder(cls, folder: Path) -> "Seen":
        wandb.teardown()  # wandb's own process ends, and has written all that it ever would
        command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(folder)]
        # Unless told otherwise, this command itself calls home; whom the run calls is another question.
        quiet = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        quiet["WANDB_ERROR_REPORTING"] = "false"
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet)
        return cls([json.loads(line) for line in done.stdout.splitlines()])

    def kind(self, name: str) -> list[dict[str, Any]]:
        return [record[name] for record in self.records if record["type"] == name]

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        for run in self.kind("run"):
            config |= run["config"]["update"]
        return config

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = {}
        for update in self.kind("summary"):
            summary |= update["update"]
        return summary

    @property
    def history(self) -> list[dict[str, Any]]:
        return [row["item"] for row in self.kind("history")]

    @property
    def exit_code(self) -> int:
        (found,) = self.kind("exit")
        return int(found.get("exit_code", 0))
