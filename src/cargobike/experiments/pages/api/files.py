"""Files of experiments: what lies in their folders, and downloads."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from cargobike.experiments.pages.answers import FileEntry, FolderAnswer
from cargobike.experiments.pages.api.inputs import ExperimentId
from cargobike.experiments.pages.describing import utc
from cargobike.experiments.pages.folders import list_folder, open_file, read_blocks
from cargobike.experiments.pages.state import State
from cargobike.ui.web.answering import REFUSALS, sends

InnerPath = Annotated[str, Query(max_length=1000, description="A path inside the experiment's folder.")]
FilePath = Annotated[str, Query(min_length=1, max_length=1000, description="A file in the experiment's folder.")]

routes = APIRouter(prefix="/experiments/{experiment_id}", tags=["files"], responses=REFUSALS)


@routes.get("/files")
@sends
def files(state: State, experiment_id: ExperimentId, path: InnerPath = "") -> FolderAnswer:
    """Return what lies in a folder of an experiment; links are listed as `other` and never followed."""
    folder = state.live.with_files(experiment_id).folder
    entries, left_out = list_folder(folder.root, path)
    listed = [FileEntry(**{**dataclasses.asdict(each), "changed_at": utc(each.changed_at)}) for each in entries]
    return FolderAnswer(path=path, entries=listed, left_out=left_out)


@routes.get(
    "/files/content",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The bytes of the file."}},
)
def content(state: State, experiment_id: ExperimentId, path: FilePath) -> Response:
    """Return a file as bytes to be saved, so that no browser shows or runs it."""
    folder = state.live.with_files(experiment_id).folder
    file, size, name = open_file(folder.root, path)
    headers = {
        "content-length": str(size),
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(read_blocks(file, size), media_type="application/octet-stream", headers=headers)
