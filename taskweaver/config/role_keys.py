"""The configuration keys of the roles in ``taskweaver/ext_role``; see `known_keys`."""

from __future__ import annotations

from taskweaver.config.key import Key

EXT_ROLES = ("echo", "recepta")

ROLE_KEYS: tuple[Key, ...] = (
    Key("echo.decorator", "str", "", "Text before and after what the Echo repeats."),
    Key("recepta.decorator", "str", "", "Text before and after Recepta's acknowledgement."),
)
