"""Secrets are masked in copies for readers; paths, numbers and code are left as they are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taskweaver.utils.redact import (
    MASK,
    Redactor,
    has_mask,
    is_location,
    names_a_secret,
    redact,
    redact_data,
    redact_known,
    redact_secrets,
    redact_secrets_in,
    register_configured,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LLM_API_KEY=abcd1234efgh rest", f"LLM_API_KEY={MASK} rest"),
        ('{"llm.api_key": "hush hush", "a": 1}', f'{{"llm.api_key": "{MASK}", "a": 1}}'),
        (r"{\"api_key\": \"hushhush\"}", rf"{{\"api_key\": \"{MASK}\"}}"),
        ("Authorization: Bearer abcdefghijklmnop", f"Authorization: Bearer {MASK}"),
        ("password: hunter22 and more", f"password: {MASK} and more"),
        ("password = 'swordfish'", f"password = '{MASK}'"),
        ("https://me:pw1@host/x", f"https://me:{MASK}@host/x"),
    ],
)
def test_secrets_of_the_usual_shapes_are_masked(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=1024, total_token: 1234567",
        "api_key=None token: null, the password is fine",
        "a task-aaaaaaaaaaaaaaaaaaaaaaaa, monkey: banana-republic",
        "secret=$FROM_ELSEWHERE",
        "tokens = split(token=self.token, secret=load()); token = tokens[0]",
        "PWD=/home/me/work OLDPWD=/home/me, pwd: somewhere-else",
        "token=/home/me/.config/token --secret=./keys/secret.pem",
        "read /data/token=north/part-0.csv and s3/secret=x12345/part.csv",
        "token_url=https://login.example.org/oauth2/token",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "token = 'abcdefghijklmnop1234'; len(token)",
        "password: str = 'hunter22-and-more'",
        'requests.get(url, headers={"Authorization": f"Bearer {token}"})',
        "engine = create_engine('postgresql://me:word@host/db')",
        "export DB_PASSWORD=swordfish",
        "pip install sk-learn-contrib-extra-trees hf_transformers_utils_and_more",
        "results/sk-experiments-2024-with-all-the-data/hf_cache_of_models_2024_11/x.csv",
        "skewness-abcdefghijklmnopqrstuv, task_npm_abcdefghijklmnopqrstuvwx",
    ],
)
def test_code_is_masked_by_values_and_key_shapes_alone(text: str) -> None:
    assert redact_secrets(text) == text
    assert redact_secrets_in({"password": [text]}) == {"password": [text]}


@pytest.mark.parametrize("name", ["password", "api_key", "token", "secret", "credential"])
def test_a_value_is_masked_whatever_letters_its_name_is_written_with(name: str) -> None:
    for place, letter in enumerate(name):
        same = re.compile(letter, re.IGNORECASE)
        for other in filter(same.fullmatch, map(chr, range(0x3000))):
            text = f"{name[:place]}{other}{name[place + 1 :]}: hunter2-and-more"
            assert "hunter2" not in Redactor().redact(text), text


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnopqrstuvwxyz", "sk-ant-api03-aB3_dE-fG7hIjKlMnOpQrStUvWx",
        "sk_live_abcdefghijklmnop1234", "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvw", "glpat-ab_cdefghijklmnop-rs",
        "xoxb-123456789012-123456789012-abcdefghijklmnopqrstuvwx", "AKIAIOSFODNN7EXAMPLE",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
        "gsk_abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl",
    ],
)  # fmt: skip
def test_the_key_of_a_known_provider_is_masked_anywhere(key: str) -> None:
    texts = [f"key='{key}'", f"Bearer {key}", f"https://host/?key={key}&x=1", f"({key})"]
    texts += [rf"a line\n{key}\t", f"token = /home/{key}/x", f"secret=${key}"]
    for text in texts:
        assert redact_secrets(text) == text.replace(key, MASK)
        assert key not in redact(text)


def test_a_registered_value_is_masked_wherever_it_stands() -> None:
    redactor = Redactor()
    assert redactor.redact("plain-words") == "plain-words"
    for value in ("plain-words", "plain-words-longer"):
        redactor.add(value)
    assert redactor.redact("x plain-words-longer, plain-words") == f"x {MASK}, {MASK}"
    redactor.add("tiny")
    assert redactor.redact("a tiny thing") == "a tiny thing"


def test_a_part_of_a_path_to_keep_is_no_secret() -> None:
    redactor = Redactor()
    redactor.keep(["/home/me/sales-report", "/work"])
    redactor.add("sales-report")
    redactor.add("sales-reporting")
    assert redactor.redact("/home/me/sales-report/a.csv") == "/home/me/sales-report/a.csv"
    assert redactor.redact("sales-reporting") == MASK


@pytest.mark.parametrize(
    ("name", "value", "is_masked"),
    [
        ("primary_key", "order_number", False), ("llm.stop_token", "end of text", False),
        ("key", "cfg0key1cfg2key3", True), ("db_password", "cfgpass", True),
    ],
)  # fmt: skip
def test_a_configured_value_is_a_secret_by_its_name(
    name: str, value: str, *, is_masked: bool
) -> None:
    register_configured("configurations", [{name: ["x", f"{value}2"]}])
    assert (redact_known(f"see {value}2") == f"see {MASK}") is is_masked
    register_configured("configurations", {name: value})
    assert (redact_known(f"see {value}") == f"see {MASK}") is is_masked


def test_data_keeps_its_form_and_loses_its_secrets() -> None:
    shared = {"api_key": "hush-hush", "password": 12345678, "key": "Region", "token": "/home/me/t"}
    data = {"one": shared, "two": [shared, "LLM_API_KEY=abcd1234"], "three": None}
    masked = redact_data(data)
    assert masked["one"] == {**shared, "api_key": MASK}
    assert masked["one"] is masked["two"][0]
    assert masked["two"][1] == f"LLM_API_KEY={MASK}"


@pytest.mark.parametrize("piece", ["1", "/.", "://", "a", "aB1-", "="])
@pytest.mark.parametrize("start", ["password = '", "token=", "https://"])
def test_a_long_value_takes_time_linear_in_its_length(start: str, piece: str) -> None:
    """Quadratic time would be many minutes."""
    text = f"{start}{piece * (200_000 // len(piece))}x'"
    assert redact(text) is not None
    assert redact_secrets(text) is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OPENAI_API_KEY", True), ("SECRET", True), ("PGPASSWORD", True), ("apiKey", True),
        ("x-api-key", True), ("llm.api_key", True), ("OLDPWD", False), ("MONKEY", False),
        ("TOKENIZERS_PARALLELISM", False), ("max_tokens", False), ("llm.stop_token", False),
    ],
)  # fmt: skip
def test_a_name_says_by_a_whole_word_that_it_holds_a_secret(name: str, *, expected: bool) -> None:
    assert names_a_secret(name) is expected


ENVIRONMENT = {
    "PWD": "/home/me/analysis-folder",
    "OLDPWD": "relative-folder-of-before",
    "SOME_KEY": "word-of-16-chars",
    "OTHER_TOKEN": "only-15-chars-x",
    "DB_PASSWORD": "8-chars!",
    "A_SECRET": "7-chars",
    "ACCOUNT_SECRET": "123456789012",
    "SSH_KEY": "/home/me/.ssh/id_ed25519",
    "TOKEN_FILE": "~/.config/service/token",
    "KEY_STORE": "config/keys/service.json",
    "TOKEN_URL": "https://login.example.org/token",
    "A_KEY_THAT_IS_HERE": "a-file-in-the-folder-here",
    "LONG_TOKEN": "x1" * 3000,
    "HOOK_SECRET": "https://hooks.example.com/services/T1/B2/abcdefghijklmnop12345678",
    "POSTGRES_PASSWORD": "taskweaver",
}


def test_of_the_environment_only_secrets_are_registered() -> None:
    """In a process of its own: a registered value stays registered."""
    code = (
        "import json, sys, pathlib, tempfile, os\n"
        "from taskweaver.utils.redact import keep_places, redact_known, register_environment\n"
        "names = json.loads(sys.argv[1])\n"
        "os.chdir(tempfile.mkdtemp())\n"
        "pathlib.Path(names['A_KEY_THAT_IS_HERE']).touch()\n"
        "keep_places('/home/me/taskweaver')\n"
        "register_environment(names)\n"
        "print(json.dumps({n: redact_known(v) for n, v in names.items()}))"
    )
    command = [sys.executable, "-c", code, json.dumps(ENVIRONMENT)]
    shown = json.loads(subprocess.check_output(command))
    masked = {name for name, value in shown.items() if value != ENVIRONMENT[name]}
    assert masked == {"SOME_KEY", "DB_PASSWORD", "LONG_TOKEN", "HOOK_SECRET"}
    assert shown["DB_PASSWORD"] == MASK


PARTS = st.text("abcdefgXYZ0123456789_-.= äö", min_size=1, max_size=12)
PATHS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["/", "~/", "./", "../", "/home/me/", "C:/"]),
    st.lists(PARTS, min_size=1, max_size=6),
)
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)).map(str)
SECRETS = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=12, max_size=60
).filter(lambda text: not text.startswith(("/", "~", ".", "\\")) and text.isalnum())


@given(PATHS)
def test_a_path_is_never_masked(path: str) -> None:
    redactor = Redactor()
    redactor.add(path)
    redactor.add(path.upper())
    for redacted in (redactor.redact_known, redactor.redact_secrets):
        assert redacted(f"see {path} there") == f"see {path} there"
        assert redacted(f"token = {path!r}") == f"token = {path!r}"
    if " " not in path:
        assert redactor.redact(f"password={path}") == f"password={path}"


@given(NUMBERS, st.sampled_from(["password", "api_key", "SECRET", "token"]))
def test_a_number_is_never_masked_for_its_name(number: str, name: str) -> None:
    text = f"{name} = {number}"
    assert redact(text) == text
    assert redact_secrets(text) == text
    assert redact_data({name: number}) == {name: number}


@given(SECRETS, st.text(max_size=40), st.text(max_size=40))
def test_a_known_value_is_always_masked(secret: str, before: str, after: str) -> None:
    redactor = Redactor()
    redactor.add(secret)
    for redacted in (redactor.redact_known, redactor.redact_secrets, redactor.redact):
        masked = redacted(f"{before} {secret} {after}")
        assert secret not in masked
        assert has_mask(masked)
        assert redacted(masked) == masked


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=20))
def test_a_known_value_is_masked_in_json_and_in_a_repr(middle: str) -> None:
    secret = f"known{middle}value"
    assume(not has_mask(secret) and not is_location(secret))
    redactor = Redactor()
    redactor.add(secret)
    for text in (json.dumps([secret]), json.dumps([secret], ensure_ascii=False), repr([secret])):
        assert redactor.redact_known(text)[2:-2] == MASK
    address = f"https://me:{quote(secret, safe='')}@host"
    assert redactor.redact_known(address) == f"https://me:{MASK}@host"


def test_the_mask_is_no_code() -> None:
    with pytest.raises(SyntaxError):
        compile(f"key = {MASK}", "cell", "exec")
    assert not has_mask("key = '***'")
