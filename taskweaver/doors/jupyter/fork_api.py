"""An extension of Jupyter servers: `POST /taskweaver/kernels/ID/fork` forks a kernel.

The notebook of the kernel, if it has one, is copied, and the copy is opened on the fork. The
package `jupyter_server` is imported only here, by the server itself.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from taskweaver.errors import TaskWeaverError

_ROUTE = r"/taskweaver/kernels/(?P<kernel_id>[0-9a-f-]{36})/fork"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "taskweaver.doors.jupyter.fork_api"}]


def _load_jupyter_server_extension(server: Any) -> None:
    from jupyter_server.utils import url_path_join

    route = url_path_join(server.web_app.settings["base_url"], _ROUTE)
    server.web_app.add_handlers(".*$", [(route, _handler())])


def _handler() -> type:
    """Return the handler, whose base needs the package."""
    from jupyter_server.auth.decorator import authorized
    from jupyter_server.base.handlers import APIHandler
    from tornado import web

    class ForkHandler(APIHandler):
        """Forks a kernel with all data."""

        auth_resource = "kernels"

        @web.authenticated
        @authorized
        async def post(self, kernel_id: str) -> None:
            """Fork a kernel, and return the model of the fork, with the path of its notebook."""
            if kernel_id not in self.kernel_manager:
                raise web.HTTPError(404, f"There is no kernel {kernel_id}.")
            try:
                model = await fork_kernel(
                    kernel_id, self.kernel_manager, self.session_manager, self.contents_manager
                )
            except TaskWeaverError as error:
                raise web.HTTPError(409, str(error)) from error
            self.set_status(201)
            self.finish(json.dumps(model, default=str))

    return ForkHandler


async def fork_kernel(kernel_id: str, kernels: Any, sessions: Any, contents: Any) -> Any:
    """Fork a kernel of a Jupyter server, and return the model of the fork.

    Args:
        kernel_id: The kernel.
        kernels: The server's owner of kernels.
        sessions: Its sessions, each a notebook and a kernel.
        contents: Its files.

    Raises:
        ForkRefused: If the kernel cannot be forked, or is no kernel of the provisioner.
    """
    from jupyter_server.utils import ensure_async

    # Not at the top: a Jupyter server imports this when it starts.
    from taskweaver.ces.errors import ForkRefused
    from taskweaver.doors.jupyter.provisioner import TaskWeaverProvisioner

    found = await ensure_async(sessions.list_sessions())
    path = next((one["path"] for one in found if one["kernel"]["id"] == kernel_id), "")
    kernel = kernels.get_kernel(kernel_id)
    if not isinstance(kernel.provisioner, TaskWeaverProvisioner):
        raise ForkRefused("it was not started by the kernel that `taskweaver kernelspec` installs")
    name = kernel.kernel_name
    forked = await ensure_async(kernels.start_kernel(kernel_name=name, fork_of=kernel_id))
    model = kernels.kernel_model(forked)
    if not path:
        return model | {"path": ""}
    copied = await ensure_async(contents.copy(path))
    title = PurePosixPath(copied["path"]).name
    await ensure_async(
        sessions.create_session(
            path=copied["path"], name=title, type="notebook", kernel_name=name, kernel_id=forked
        )
    )
    return model | {"path": copied["path"]}
