"""The ImageReader: finds the image of a task, and has a model look at the image.

An image is an address, or a file of the session or the project.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from pathlib import Path

from injector import inject

from taskweaver.errors import TaskWeaverError
from taskweaver.ext_role.task import TaskRole
from taskweaver.llm.api import LLMApi
from taskweaver.llm.errors import ModelError
from taskweaver.llm.parsing.json_text import parse_reply
from taskweaver.llm.types import format_chat_message
from taskweaver.logging.log import TelemetryLogger
from taskweaver.logging.tracing import Tracing
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy, SessionEventEmitter
from taskweaver.role.prompt import load_prompt, reply_schema
from taskweaver.role.registry.entry import RoleEntry
from taskweaver.role.role import RoleConfig
from taskweaver.role.workplace import Workplace
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.images import IMAGE_SUFFIXES, image_kind
from taskweaver.utils.text import fill, remove_temporal_delimiters, shorten

MAX_BYTES = 10 << 20
_MOST_LISTED = 30
_REMOTE = re.compile(r"https?://\S+", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

_SCHEMA = reply_schema({"image_url": {}})


class ImageNotUsable(TaskWeaverError):
    """An image that does not exist, is not allowed, or cannot be read."""


def find_image(name: str, folders: Sequence[Path]) -> str:
    """Return the address of the image called `name`, or the content as a ``data:`` address.

    Args:
        name: An http or https address, which is passed on as it is, or the path of a file: inside
            one of `folders`, or starting at one of them.
        folders: Folders images are read from, the first one first; their paths hold no links.

    Raises:
        ImageNotUsable: If there is none, it lies elsewhere, is too large, or is no image.
    """
    if _REMOTE.fullmatch(name):
        return name
    shown = shorten(name, 200)
    if _SCHEME.match(name):
        raise ImageNotUsable(f"{shown} is neither an http or https address nor a file.")
    try:
        data = _read(name, folders)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImageNotUsable(f"{shown} cannot be read: {reason}.") from error
    if data is None:
        raise ImageNotUsable(
            f"{shown} is not in the session's working directory or the project's data folder, and"
            " only images there are read."
        )
    if len(data) > MAX_BYTES:
        raise ImageNotUsable(f"{shown} is larger than {MAX_BYTES >> 20} MiB; make it smaller.")
    kind = image_kind(data)
    if kind is None:
        raise ImageNotUsable(f"{shown} is no PNG, JPEG, GIF or WebP image.")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def listed_images(folders: Sequence[Path]) -> list[str]:
    """Return the names of images directly in some folders, cut after a number of names."""
    names = {
        path.name
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGE_SUFFIXES and path.name.isprintable()
    }
    return sorted(names)[:_MOST_LISTED]


def _read(name: str, roots: Sequence[Path]) -> bytes | None:
    """Return a file's content, up to a byte over the limit, or None for a file in no folder."""
    is_inside = False
    for start in roots:
        path = (start / name).resolve()
        root = next((root for root in roots if path.is_relative_to(root)), None)
        if root is not None and path.exists():
            return _content(root, path)
        if root is None and os.path.lexists(start / name):
            return None  # a link that leads out
        is_inside = is_inside or root is not None
    if is_inside:
        raise FileNotFoundError(2, "the file does not exist")
    return None


def _content(root: Path, path: Path) -> bytes:
    """Read a file below a folder, without following a link.

    Code that runs in the folder could put one there since the path was checked.
    """
    if path == root:
        raise ValueError("it is not a file")
    with Folder.at(root) as folder, folder.open_file(path.relative_to(root)) as file:
        return file.read(MAX_BYTES + 1)


_PROMPT_FILE = Path(__file__).with_name("image_reader_prompt.yaml")


class ImageReaderConfig(RoleConfig):
    """Keys under ``image_reader.``."""

    def _configure(self) -> None:
        self.planners_alias = self.src.get_str("planner.llm_alias")


class ImageReader(TaskRole):
    """A role that shows an image to a model that takes images, and passes the answer on."""

    @inject
    def __init__(  # noqa: PLR0913 - a role is given what it uses, by type
        self,
        config: ImageReaderConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        llm_api: LLMApi,
        workplace: Workplace,
        role_entry: RoleEntry,
    ) -> None:
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.llm_api = llm_api
        self._folders = (workplace.working_folder, workplace.data_folder)
        self._texts = load_prompt(_PROMPT_FILE, ("find", "look"))
        self._is_planners_model = config.llm_alias == config.planners_alias

    def answer(self, task: Post, proxy: PostEventProxy) -> str:
        """Answer the question of the newest message about an image.

        Raises:
            ModelError: If the model cannot be asked which image is meant.
        """
        asked = remove_temporal_delimiters(task.message)
        proxy.update_status("finding the image")
        name = self._name_in(asked)
        if not name:
            return (
                "It is not clear which image is meant. Name its file or its http address, and say"
                " what to find out."
            )
        try:
            url = find_image(name, self._folders)
        except ImageNotUsable as error:
            return str(error)
        proxy.update_status(f"looking at {shorten(name, 80)}")
        try:
            seen = self._look(asked, url)
        except ModelError as error:
            if error.kind == "cancelled":
                raise
            return _not_seen(name, error)
        if self._is_planners_model and task.send_from != "User":
            # The Planner's model takes images, as was just seen: it is shown this one too.
            extra = {"image_url": url}
            proxy.update_attachment(name, AttachmentType.image_url, extra=extra)
        return f"Image: {shorten(name, 200)}\n\n{seen}"

    def _name_in(self, asked: str) -> str:
        """Ask the model which image is meant; empty when it names none."""
        names = "\n".join(f"- {name}" for name in listed_images(self._folders)) or "- none"
        messages = [
            format_chat_message("system", fill(self._texts["find"], IMAGES=names)),
            format_chat_message("user", asked),
        ]
        reply = self.llm_api.chat_completion(
            messages, llm_alias=self.config.llm_alias, json_schema=_SCHEMA
        )
        found = parse_reply(str(reply["content"]))
        if found.problem:
            self.logger.warning(f"the ImageReader's reply cannot be used: {found.problem}")
        return found.fields.get("image_url", "").strip()

    def _look(self, asked: str, url: str) -> str:
        messages = [
            format_chat_message("system", self._texts["look"]),
            format_chat_message("user", asked, [url]),
        ]
        reply = self.llm_api.chat_completion(messages, llm_alias=self.config.llm_alias)
        return str(reply["content"])


def _not_seen(name: str, error: ModelError) -> str:
    return (
        f"{shorten(name, 200)} was found, but the model could not look at it. {error}\n"
        "If this model takes no images, name one that does in ext_llms.llm_configs, and its alias"
        " in image_reader.llm_alias."
    )
