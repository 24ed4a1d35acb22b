"""Keys of the original's mock model, and of signing in to Azure."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key, path

MOCK_KEYS: tuple[Key, ...] = (
    key(
        "llm.use_mock",
        False,
        "Whether a mock answers in place of every model; no endpoint is asked then.",
    ),
    enum(
        "llm.mock.mode",
        "playback_or_record",
        "fixed playback_only playback_or_record",
        "What the mock answers: a fixed reply, or the one its file has for the same messages. A"
        " message that is not in the file is an error in both playback modes.",
    ),
    key(
        "llm.mock.fixed_chat_responses",
        '{"role": "assistant", "content": "Hello!"}',
        "The fixed reply, a chat message as JSON.",
    ),
    Key(
        "llm.mock.fixed_embedding_responses",
        "str",
        None,
        "The fixed vector as JSON; none takes 64 zeros.",
    ),
    path(
        "llm.mock.cache_path",
        "${AppBaseDir}/cache/mock.yaml",
        "File of the replies to play back, as the original writes it.",
    ),
)

AZURE_AD_KEYS: tuple[Key, ...] = (
    enum(
        "llm.aad_auth_mode",
        "default_azure_credential",
        "default_azure_credential device_login aad_app",
        "How `azure_ad` signs in: as the machine or user is signed in already, by a code entered in"
        " a browser, or as an application.",
    ),
    key("llm.aad_tenant_id", "common", "Directory `azure_ad` signs in to."),
    Key("llm.aad_client_id", "str", None, "Application `azure_ad` signs in as."),
    Key("llm.aad_client_secret", "str", None, "Secret of that application."),
    key(
        "llm.aad_api_resource",
        "https://cognitiveservices.azure.com/",
        "Service that tokens of `azure_ad` are for.",
    ),
    key("llm.aad_api_scope", ".default", "Scope of tokens of `azure_ad`."),
)
