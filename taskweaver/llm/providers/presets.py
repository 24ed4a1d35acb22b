"""Endpoints of models, by name."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from taskweaver.llm.dialects.switch import DialectName


@dataclass(frozen=True, slots=True)
class Preset:
    """Facts about an endpoint.

    Attributes:
        label: Its name as people write it.
        api_base: Its address, up to the path of requests such as ``/chat/completions``; empty
            where the user names it.
        key_variable: Environment variable its users keep their key in; empty for none.
        model: Model used when none is configured; empty takes the one the server has loaded.
        dialect: Protocol it speaks.
    """

    label: str
    api_base: str
    key_variable: str = ""
    model: str = ""
    dialect: DialectName = "chat"

    def owns(self, base: str) -> bool:
        """Return whether an address is the provider's own: the host or a host below, by https."""
        parts, own = urlsplit(base.strip()), urlsplit(self.api_base)
        host = parts.hostname or ""
        is_below = host == own.hostname or host.endswith(f".{own.hostname}")
        return parts.scheme == own.scheme == "https" and is_below

    @property
    def needs_key(self) -> bool:
        """Whether calls without a key are refused."""
        return bool(self.key_variable)


PRESETS: dict[str, Preset] = {
    "openai": Preset("OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-4.1-mini"),
    "ollama": Preset("Ollama", "http://127.0.0.1:11434/v1", dialect="ollama"),
    "lmstudio": Preset("LM Studio", "http://127.0.0.1:1234/v1"),
    "llamacpp": Preset("llama.cpp", "http://127.0.0.1:8080/v1"),
    "vllm": Preset("vLLM", "http://127.0.0.1:8000/v1"),
    "jan": Preset("Jan", "http://127.0.0.1:1337/v1"),
    "groq": Preset(
        "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "llama-3.3-70b-versatile"
    ),
    "qwen": Preset(
        "Qwen",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        "qwen-plus",
    ),
    "qwen-intl": Preset(
        "Qwen (international)",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        "qwen-plus",
    ),
    "zhipuai": Preset(
        "Zhipu AI", "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY", "glm-4-plus"
    ),
    "google_genai": Preset(
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-2.5-flash",
    ),
    "deepseek": Preset(
        "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"
    ),
    "mistral": Preset(
        "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-small-latest"
    ),
    "anthropic": Preset(
        "Anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        "claude-sonnet-5-5",
        "anthropic",
    ),
    "openrouter": Preset(
        "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter/auto"
    ),
    "other": Preset("Other", ""),
}

_BY_HOST = {urlsplit(preset.api_base).netloc: name for name, preset in PRESETS.items()}


def provider_at(base: str) -> str:
    """Return the provider that has an address, by host and port; empty for none that is known."""
    return _BY_HOST.get(urlsplit(base).netloc, "")


LOCAL_PORTS: dict[int, str] = {
    urlsplit(preset.api_base).port or 0: preset.label
    for preset in (PRESETS[name] for name in ("ollama", "lmstudio", "vllm", "llamacpp", "jan"))
}
"""Where local servers listen by default, the first that answers wins."""
