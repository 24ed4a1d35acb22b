"""The error hierarchy for callers.

::

    TaskWeaverError
    ├── ConfigError            config.errors   a key is unknown, missing or of the wrong type
    ├── ProjectError           app.errors      the folder is not a project, or cannot become one
    ├── PluginError            plugin.errors   a plugin cannot be read, loaded or called
    ├── RoleError              role.errors     a role is unknown, does not import, or cannot answer
    ├── ConversationError      memory.errors   a stored conversation cannot be read or written
    ├── BranchedMemoryError    memory.branched.errors   a branched memory refuses, or cannot be used
    ├── ModelError             llm.errors      a model call failed; has a kind and `retryable`
    ├── KernelError            ces.errors      a kernel did not start, died, or is busy
    ├── MadeBeforeFork         utils.system.forks   an object is its parent process's
    ├── ServerError            server.errors   the server cannot start, or refuses a request
    └── SessionError           session.errors  a session is closed, busy, or in use elsewhere
        └── RoundFailed        face.errors     a question of the library was not answered
"""


class TaskWeaverError(Exception):
    """Base of every error a caller may want to catch.

    A subclass takes the facts as arguments, keeps them as attributes and words them in
    `__str__`. Only facts go to `super().__init__`, so an error survives pickling when a
    worker process raises it.
    """


class RemediedError(TaskWeaverError):
    """An error in two sentences.

    Attributes:
        detail: The event.
        hint: The remedy; empty for none.
    """

    def __init__(self, detail: str, hint: str = "") -> None:
        super().__init__(detail, hint)
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        """The event, and the remedy."""
        return f"{self.detail} {self.hint}".strip()
