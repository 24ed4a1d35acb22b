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

project = Path.home() / "taskweaver-project"
taskweaver = [str(Path(sys.executable).with_name("taskweaver"))]


def token() -> str:
    """Return the token of this user, made at the first start; only the user can read it."""
    file = project / ".hub-token"
    if not file.exists():
        if not (project / "taskweaver_config.json").exists():
            subprocess.run([*taskweaver, "init", str(project)], check=True)
        users = [*taskweaver, "-p", str(project), "serve", "users"]
        new = [*users, "add", "me", "--role", "admin"]
        made = subprocess.run(new, stdout=subprocess.PIPE, text=True)
        if made.returncode:  # the user is there, and the file is lost
            renewal = [*users, "token", "me"]
            made = subprocess.run(renewal, check=True, stdout=subprocess.PIPE, text=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
            target.write(made.stdout.strip())
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
