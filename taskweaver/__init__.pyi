from taskweaver.app.app import TaskWeaverApp
from taskweaver.face import TaskWeaver

__all__ = ["TaskWeaver", "TaskWeaverApp", "__version__"]
__version__: str
