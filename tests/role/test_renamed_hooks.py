"""Methods of roles that have another name since an earlier release."""

import pytest

from taskweaver.role.errors import RoleError
from taskweaver.role.role import Role


def test_a_role_that_defines_meet_is_refused_with_the_new_name() -> None:
    with pytest.raises(RoleError, match="rename it to `bind_peers`"):
        type("Dice", (Role,), {"meet": lambda *_: None})
