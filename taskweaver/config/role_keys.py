"""The configuration keys of the roles in ``taskweaver/ext_role``; see `known_keys`."""

from __future__ import annotations

from taskweaver.config.key import Key

EXT_ROLES = ("echo", "recepta", "document_retriever")

ROLE_KEYS: tuple[Key, ...] = (
    Key("echo.decorator", "str", "", "Text before and after what the Echo repeats."),
    Key("recepta.decorator", "str", "", "Text before and after Recepta's acknowledgement."),
    Key(
        "document_retriever.index_folder",
        "path",
        "${AppBaseDir}/knowledge_base",
        "Folder of the documents: text, Markdown, HTML, PDF, Word.",
    ),
    Key("document_retriever.size", "int", 5, "Most passages in an answer.", minimum=1),
    Key(
        "document_retriever.target_length",
        "int",
        256,
        "Length of a passage in tokens, of 4 characters each.",
        minimum=16,
    ),
)
