"""The part of the stand-in server that keeps artifacts: each content once, as W&B does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WHEN = "2026-01-01T00:00:00Z"


@dataclass
class Artifact:
    """An artifact, with the files that were uploaded for it, by their names."""

    name: str
    kind: str
    digest: str
    metadata: str | None
    committed: bool = False
    files: dict[str, bytes] = field(default_factory=dict)


class Artifacts:
    """All artifacts by their ids, how often each file was uploaded, and the digests of those that each run uses."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.known: dict[str, Artifact] = {}
        self.uploads: list[str] = []
        self.used: dict[str, list[str]] = {}

    def of_kind(self, kind: str) -> list[Artifact]:
        return [artifact for artifact in self.known.values() if artifact.kind == kind and artifact.committed]

    def take(self, path: str, content: bytes) -> None:
        """Keep an uploaded file. `path`: `<artifact id>/<name>`."""
        artifact_id, _, name = path.partition("/")
        self.known[artifact_id].files[name] = content
        self.uploads.append(name)

    def answer(self, name: str, variables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Answer a query of GraphQL about artifacts; None if it is about something else."""
        asked = variables.get("input") or variables
        if name == "ArtifactType":
            return {"project": {"artifact": None}}
        if name == "CreateArtifact":
            return {"createArtifact": {"artifact": self._created(asked)}}
        if name == "CreateArtifactManifest":
            file = {"id": "f", "uploadUrl": self._url(asked["artifactID"], "manifest"), "uploadHeaders": []}
            return {"createArtifactManifest": {"artifactManifest": {"id": asked["artifactID"], "file": file}}}
        if name == "UpdateArtifactManifest":
            number = asked["artifactManifestID"]
            file = {"id": "f", "uploadUrl": self._url(number, "manifest"), "uploadHeaders": []}
            return {"updateArtifactManifest": {"artifactManifest": {"id": number, "file": file}}}
        if name == "CreateArtifactFiles":
            return {
                "createArtifactFiles": {"files": {"edges": [{"node": self._file(f)} for f in asked["artifactFiles"]]}}
            }
        if name == "UseArtifact":
            self.used.setdefault(asked["runName"], []).append(self.known[asked["artifactID"]].digest)
            return {"useArtifact": {"artifact": {"id": asked["artifactID"]}}}
        if name == "CommitArtifact":
            artifact = self.known[asked["artifactID"]]
            artifact.committed = True
            return {"commitArtifact": {"artifact": {"id": asked["artifactID"], "digest": artifact.digest}}}
        return {"artifact": self._whole(asked["id"])} if name == "ArtifactByID" else None

    def _url(self, artifact_id: str, name: str) -> str:
        return f"{self.address}/artifact/{artifact_id}/{name}"

    def _created(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the artifact of this content, whole if it is there already."""
        name, digest = asked["artifactCollectionName"], asked["digest"]
        there = [number for number, one in self.known.items() if (one.name, one.digest) == (name, digest)]
        number = there[0] if there else f"a{len(self.known)}"
        if not there:
            self.known[number] = Artifact(name, asked["artifactTypeName"], digest, asked["metadata"])
        state = "COMMITTED" if self.known[number].committed else "PENDING"
        return {"id": number, "state": state, "artifactSequence": {"id": "s", "latestArtifact": None}}

    def _file(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        number, name = asked["artifactID"], asked["name"]
        node = {"storagePath": f"{number}/{name}", "uploadUrl": self._url(number, name), "uploadHeaders": []}
        return {**node, "uploadMultipartUrls": None, "artifact": {"id": number}, "name": name}

    def _whole(self, number: str) -> dict[str, Any]:
        artifact = self.known[number]
        project = {
            "__typename": "Project",
            "id": "p",
            "internalId": "p",
            "name": "p",
            "entity": {"__typename": "Entity", "id": "e", "name": "me"},
        }
        sequence = {"__typename": "ArtifactSequence", "id": "s", "name": artifact.name, "project": project}
        return {
            **{"__typename": "Artifact", "id": number, "artifactSequence": sequence, "versionIndex": 0},
            **{"artifactType": {"name": artifact.kind}, "description": None, "metadata": artifact.metadata},
            **{"ttlDurationSeconds": -1, "ttlIsInherited": False, "tags": [], "historyStep": None},
            **{"state": "COMMITTED", "size": 0, "digest": artifact.digest, "digestAlgorithm": "MANIFEST_MD5"},
            **{"commitHash": None, "fileCount": len(artifact.files), "createdAt": WHEN, "updatedAt": WHEN},
            "aliases": [],
        }
