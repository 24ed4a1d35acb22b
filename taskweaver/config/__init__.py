"""Configuration: one table of keys, and the places their values come from."""

from taskweaver.config.check import check
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.errors import ConfigError
from taskweaver.config.module_config import ModuleConfig

__all__ = ["AppConfigSource", "ConfigError", "ModuleConfig", "check"]
