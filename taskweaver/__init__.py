"""TaskWeaver: ask a question about your data; a plan, code and a live kernel answer it."""

from taskweaver.utils.lazy import on_demand

__all__ = ["TaskWeaver", "TaskWeaverApp", "__version__"]  # noqa: F822 - imported on demand
__version__ = "0.3.0"
__getattr__, __dir__ = on_demand(
    __name__,
    {
        "TaskWeaver": "face",
        "TaskWeaverApp": "app.app",
        "load_ipython_extension": "doors.jupyter.asking",
        "unload_ipython_extension": "doors.jupyter.asking",
    },
)
