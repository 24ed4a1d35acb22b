"""One `taskweaver serve` for each user of a JupyterHub, by `jupyter-server-proxy`.

Install it as `/etc/jupyter/jupyter_server_config.py` where the users' servers run. The server is
then at `/user/NAME/taskweaver/`, behind the hub's login, with the rights of the user.
"""

import os
import subprocess
import sys
from pathlib import Path

HUB_NAME = os.environ.get("TASKWEAVER_HUB_NAME", "localhost")
"""Name by which browsers call the hub."""

project = Path.home() / "taskweaver"
taskweaver = [sys.executable, "-m", "taskweaver"]


def token() -> str:
    """Return the token of this user, made at the first start; only the user can read it."""
    file = project / ".hub-token"
    if not file.exists():
        subprocess.run([*taskweaver, "init", str(project)], check=True, stdout=subprocess.DEVNULL)
        add = [*taskweaver, "-p", str(project), "serve", "users", "add", "me", "--role", "admin"]
        made = subprocess.run(add, check=True, capture_output=True, text=True).stdout.strip()
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
            target.write(made)
    return file.read_text()


c.ServerProxy.servers = {  # noqa: F821 - Jupyter provides it
    "taskweaver": {
        "command": [
            *taskweaver,
            "-p",
            str(project),
            "serve",
            "--port",
            "{port}",
            "--allow-host",
            HUB_NAME,
        ],
        "request_headers_override": {"Authorization": f"Bearer {token()}"},
        "timeout": 60,
        "launcher_entry": {"enabled": False},
    }
}
