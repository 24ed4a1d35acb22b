"""The ImageReader: finds the image a task is about, and has a model look at it."""

from __future__ import annotations

from pathlib import Path

from injector import inject

from taskweaver.ext_role.image_reader.images import (
    Image,
    ImageNotUsable,
    find_image,
    listed_images,
)
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
from taskweaver.role.role import RoleConfig, RoleEntry
from taskweaver.role.workplace import Workplace
from taskweaver.utils.text import fill, remove_temporal_delimiters, shorten

_PROMPT_FILE = Path(__file__).with_name("image_reader_prompt.yaml")
_SCHEMA = reply_schema({"image_url": {}})


class ImageReaderConfig(RoleConfig):
    """Keys under ``image_reader.``."""

    def _configure(self) -> None:
        self.planners_alias = self.src.get_str("planner.llm_alias")


class ImageReader(TaskRole):
    """A role that shows an image to a model that takes images, and passes its answer on."""

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
            image = find_image(name, self._folders)
        except ImageNotUsable as error:
            return str(error)
        proxy.update_status(f"looking at {shorten(image.name, 80)}")
        try:
            seen = self._look(asked, image)
        except ModelError as error:
            if error.kind == "cancelled":
                raise
            return _not_seen(image, error)
        if self._is_planners_model and task.send_from != "User":
            # The Planner's model takes images, as was just seen: it is shown this one too.
            extra = {"image_url": image.url}
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

    def _look(self, asked: str, image: Image) -> str:
        messages = [
            format_chat_message("system", self._texts["look"]),
            format_chat_message("user", asked, [image.url]),
        ]
        reply = self.llm_api.chat_completion(messages, llm_alias=self.config.llm_alias)
        return str(reply["content"])


def _not_seen(image: Image, error: ModelError) -> str:
    return (
        f"{shorten(image.name, 200)} was found, but the model could not look at it. {error}\n"
        "If this model takes no images, name one that does in ext_llms.llm_configs, and its alias"
        " in image_reader.llm_alias."
    )
