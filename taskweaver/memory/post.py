"""One message from one role to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.type_vars import RoleName
from taskweaver.utils.ids import create_id


@dataclass(slots=True)
class Post:
    """A message between roles, with typed attachments.

    Attributes:
        id: Unique; kept when a post is loaded.
        send_from: Alias of the role that wrote it, or ``User``.
        send_to: Alias of the role it is for; ``Unknown`` until decided.
        message: Text for the receiver.
        attachment_list: Typed data, in the order it was added.
    """

    id: str
    send_from: RoleName
    send_to: RoleName
    message: str
    attachment_list: list[Attachment] = field(default_factory=list)

    @staticmethod
    def create(
        message: str | None,
        send_from: RoleName,
        send_to: RoleName = "Unknown",
        attachment_list: list[Attachment] | None = None,
    ) -> Post:
        """Build a post with a new id."""
        return Post(create_id("post"), send_from, send_to, message or "", attachment_list or [])

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form. Keys are as in the YAML files."""
        return {
            "id": self.id,
            "message": self.message,
            "send_from": self.send_from,
            "send_to": self.send_to,
            "attachment_list": [attachment.to_dict() for attachment in self.attachment_list],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a post from the wire form. Attachments of dropped types are left out.

        Raises:
            KeyError: If sender or receiver is missing.
            ValueError: If an attachment has an unknown type.
        """
        read = (Attachment.from_dict(item) for item in data.get("attachment_list") or [])
        return cls(
            id=data.get("id") or create_id("post"),
            send_from=data["send_from"],
            send_to=data["send_to"],
            message=data["message"] or "",
            attachment_list=[attachment for attachment in read if attachment is not None],
        )

    def add_attachment(self, attachment: Attachment) -> None:
        """Append an attachment."""
        self.attachment_list.append(attachment)

    def get_attachment(self, type: AttachmentType) -> list[Attachment]:
        """Return the attachments of one type, in order."""
        return [attachment for attachment in self.attachment_list if attachment.type == type]

    def text(self, type: AttachmentType) -> str:
        """Return the attachments of one type as one text."""
        return "\n".join(str(attachment.content) for attachment in self.get_attachment(type))

    def last(self, type: AttachmentType) -> str:
        """Return the newest attachment of one type as text, or an empty text."""
        found = self.get_attachment(type)
        return str(found[-1].content) if found else ""

    @property
    def artifacts(self) -> list[str]:
        """The names of the files that the cell of the post made."""
        contents = [item.content for item in self.get_attachment(AttachmentType.artifact_paths)]
        lists = [one if isinstance(one, list | tuple) else [one] for one in contents]
        return [str(path) for paths in lists for path in paths]

    def del_attachment(self, type_list: Iterable[AttachmentType]) -> None:
        """Remove all attachments of the given types."""
        types = set(type_list)
        self.attachment_list = [item for item in self.attachment_list if item.type not in types]

    def __repr__(self) -> str:
        return f"{self.send_from} -> {self.send_to}: {self.message}"
