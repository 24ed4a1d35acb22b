"""Tasks of the roles of this package, and their replies."""

from __future__ import annotations

from taskweaver.memory.memory import Memory
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import PostEventProxy
from taskweaver.role.correction import task_of
from taskweaver.role.errors import RoleError
from taskweaver.role.role import Role
from taskweaver.utils.text import wrap_temporal

_DELIMITER = "{{DELIMITER_"


class TaskRole(Role):
    """Role that answers the newest task with a text. A subclass overrides `answer`."""

    def reply(self, memory: Memory, **_kwargs: object) -> Post:
        """Answer the newest task.

        Raises:
            TaskWeaverError: If there is no task (`RoleError`), or no answer to it.
        """
        task = task_for(memory, self.alias)
        with self.event_emitter.post(self.alias) as proxy:
            proxy.update_send_to(task.send_from)
            proxy.update_message(self.answer(task, proxy))
            return proxy.end()

    def answer(self, task: Post, proxy: PostEventProxy) -> str:
        """Return the answer to the newest post to this role.

        `proxy` is the post that the answer is written to, for its status.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement answer")


def task_for(memory: Memory, alias: str) -> Post:
    """Return the newest post another role sent `alias` in this round.

    Raises:
        RoleError: If there is none.
    """
    task = task_of(memory.get_role_rounds(alias), alias)
    if task is None:
        raise RoleError(alias, "no task was sent to it in this round.")
    return task


def for_this_round(text: str) -> str:
    """Return foreign text marked as meant for this round only.

    Delimiters inside it are broken: a document cannot end the mark and stay for later rounds.
    """
    return wrap_temporal(text.replace(_DELIMITER, "{ {DELIMITER_"))
