"""Bodies and answers of the kernel API, with the fields, names and types of the original."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, Field

from taskweaver.ces.common import ExecutionArtifact, ExecutionResult
from taskweaver.server.operations import view
from taskweaver.server.transfer import FileFacts


class ServerHealth(BaseModel):
    """State of the server. Only sessions of the caller are counted."""

    status: Literal["healthy"] = "healthy"
    version: str
    active_sessions: int


class NewSession(BaseModel):
    """A session to make. A `cwd` is not used: the server chooses the working directory."""

    session_id: str
    cwd: str | None = None


class CreatedSession(BaseModel):
    """A session that was made, with the working directory on the server."""

    session_id: str
    status: Literal["created"] = "created"
    cwd: str


class SessionFacts(BaseModel):
    """A session."""

    session_id: str
    status: Literal["running", "stopped"] = "running"
    created_at: datetime
    last_activity: datetime
    loaded_plugins: list[str]
    execution_count: int
    cwd: str


class SessionList(BaseModel):
    """The sessions of the caller."""

    sessions: list[SessionFacts]


class SessionStatus(BaseModel):
    """A session after an operation, with the end of the operation."""

    session_id: str
    status: Literal["stopped", "interrupted", "restarted"]


class NewPlugin(BaseModel):
    """A plugin to load."""

    name: str
    code: str
    config: dict[str, Any] = Field(default_factory=dict)


class LoadedPlugin(BaseModel):
    """A plugin that was loaded."""

    name: str
    status: Literal["loaded"] = "loaded"


class Overview(BaseModel):
    """Name, size and the beginning of data files, as for the kernel."""

    files: list[dict[str, Any]]


class OverviewAnswer(BaseModel):
    """Tables of each file, a smaller picture, or the problem, by file name."""

    files: dict[str, Any]


class NewExecution(BaseModel):
    """Code to run.

    The same `exec_id` with the same code finds the execution that was begun before.
    """

    exec_id: str
    code: str
    stream: bool = False


class ArtifactFacts(BaseModel):
    """A file, figure or table that code produced."""

    name: str
    type: str
    mime_type: str = ""
    original_name: str = ""
    file_name: str = ""
    file_content: str | None = None
    file_content_encoding: str | None = None
    preview: str = ""
    download_url: str | None = None


class ExecutionAnswer(BaseModel):
    """Result of an execution. With `stream`, the address of the events instead."""

    execution_id: str
    is_success: bool
    error: str | None = None
    output: Any = None
    stdout: list[str] = Field(default_factory=list)
    stderr: list[str] = Field(default_factory=list)
    log: list[tuple[str, str, str]] = Field(default_factory=list)
    artifact: list[ArtifactFacts] = Field(default_factory=list)
    variables: list[tuple[str, str]] = Field(default_factory=list)


class ExecutionDetails(BaseModel):
    """Facts about an execution that the original's shape has no place for."""

    status: str
    is_state_lost: bool
    is_truncated: bool
    duration_s: float
    calls: list[tuple[str, float, float, str]]
    tables: list[dict[str, Any]]


class NewVariables(BaseModel):
    """Session variables to set."""

    variables: dict[str, str]


class UpdatedVariables(BaseModel):
    """Session variables that were set."""

    status: Literal["updated"] = "updated"
    variables: dict[str, str]


class NewFile(BaseModel):
    """A file to write into the working directory. Folders in the name are dropped."""

    filename: str
    content: str
    encoding: Literal["base64", "text"] = "base64"


class UploadedFile(BaseModel):
    """A file that was written."""

    filename: str
    status: Literal["uploaded"] = "uploaded"
    path: str


class FileList(BaseModel):
    """The files of a working directory."""

    files: list[FileFacts]


def execution_answer(result: ExecutionResult, artifacts_url: str) -> ExecutionAnswer:
    """Return the answer for a result. `artifacts_url` is the address below which artifacts are."""
    artifact = [_artifact(item, artifacts_url) for item in result.artifact]
    return view(ExecutionAnswer, result, artifact=artifact)


def execution_details(result: ExecutionResult) -> ExecutionDetails:
    """Return the further facts of a result."""
    return view(
        ExecutionDetails,
        result,
        calls=[(item.name, item.began_s, item.duration_s, item.error) for item in result.calls],
        tables=[item.to_dict() for item in result.tables],
    )


def _artifact(item: ExecutionArtifact, artifacts_url: str) -> ArtifactFacts:
    return view(
        ArtifactFacts,
        item,
        file_content=item.file_content or None,
        file_content_encoding=item.file_content_encoding if item.file_content else None,
        download_url=f"{artifacts_url}/{quote(item.file_name)}" if item.file_name else None,
    )
