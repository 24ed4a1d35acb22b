"""Configuration: one table of keys, where values come from; `files` has the key of each host."""

from taskweaver.config.check import check
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.module_config import ModuleConfig

__all__ = ["AppConfigSource", "ConfigError", "ModuleConfig", "check"]
