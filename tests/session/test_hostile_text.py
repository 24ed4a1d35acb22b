"""Text of a user, a model or a file is neither markup nor a template wherever it ends up."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_payloads import LINKS, SCRIPT, SCRIPTS
from read_pages import OF_MARKDOWN, PageReader, commonmark
from sizes import examples, some
from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.experience import Experience, ExperienceGenerator
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.plugin.spec import PluginEntry
from taskweaver.session.export import export
from taskweaver.utils.markup.inert_markdown import inert_markdown
from taskweaver.utils.text import fill

pytestmark = pytest.mark.usefixtures("no_states")

PAYLOADS = (
    *SCRIPTS, LINKS[0], "<![CDATA[<script>alert(1)</script>]]>", f"<?xml {SCRIPT}?>",
    "<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>", "<plaintext>", f"-->{SCRIPT}",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>", f"</script>{SCRIPT}",
    "<img src='x'\r\nonerror='alert(1)'>", "<scr<script>ipt>alert(1)</scr</script>ipt>",
    f'">{SCRIPT}', f"'>{SCRIPT}", f"]]>{SCRIPT}", f"</title>{SCRIPT}", f"</textarea>{SCRIPT}",
    f"1. ```\n   x\n{SCRIPT}", f"&lt;x&gt;{SCRIPT}", f"a\n\n\t```\n\n{SCRIPT}",
    f"{SCRIPT}\r\r{SCRIPT}",
)  # fmt: skip


def rendered(markdown: str) -> list[str]:
    """Return what could run in Markdown as a reader that lets HTML through shows it."""
    return PageReader(commonmark(markdown), OF_MARKDOWN | {"details", "summary"}).odd


def conversation(payload: str) -> list[Round]:
    post = Post.create(payload, payload, "User")
    for kind, content in (
        (AttachmentType.reply_content, payload),
        (AttachmentType.execution_status, "SUCCESS"),
        (AttachmentType.artifact_paths, [f"{payload}.png"]),
    ):
        post.add_attachment(Attachment.create(kind, content))
    return [Round("r", payload, "finished", [post])]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_exported_report_and_notebook_hold_no_markup(tmp_path: Path, payload: str) -> None:
    rounds = conversation(payload)
    export(rounds, tmp_path / "a.md", title="t")
    assert rendered((tmp_path / "a.md").read_text()) == []
    export(rounds, tmp_path / "a.ipynb", title="t")
    cells = json.loads((tmp_path / "a.ipynb").read_text())["cells"]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            assert rendered(cell["source"]) == []


PIECES = (
    "```", "````", "~~~", "\n", "\n", "\n", "   ", "    ", "> ", "- ", "1. ", "\t", "`", "x", "\\",
    "<script>", "<img onerror=x>", "<!--", "</details>", "<?", "|",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
@settings(max_examples=examples(75))
def test_no_arrangement_of_fences_lets_markup_through(markdown: str) -> None:
    assert rendered(inert_markdown(markdown)) == []


def test_code_in_the_steps_of_a_list_stays_as_it_is() -> None:
    first = "1. write\n   ```html\n   <b>x</b>\n   ```\n   then save\n"
    text = f"{first}2. include\n\n       <vector>\n3. end"
    assert inert_markdown(text) == (
        "1. write\n\n```html\n<b>x</b>\n```\n\nthen save\n\n"
        "2. include\n\n```\n<vector>\n```\n\n3. end"
    )


def test_the_page_of_a_memory_runs_its_own_script_only(tmp_path: Path) -> None:
    config = MemoryConfig(memory_log_enabled=False)
    payloads = [text.replace("\r", " ") for text in PAYLOADS]
    with MemoryManager(tmp_path / "memory.sqlite", config) as memory:
        memory.create_branch(None, branch_id="root")
        for number, text in enumerate(payloads):
            plain = " ".join(text.split())[:190]
            branch = f"{plain} {number}" if plain.isprintable() else str(number)
            memory.fork("root", branch)
            memory.mem_core_set(plain if plain.isprintable() else "key", text, branch_id=branch)
            memory.mem_recall_append(
                {"kind": "k", "summary": text, "task_hint": text}, branch_id=branch
            )
            memory.mem_archival_write(text, tags=[text], meta={"a": text}, branch_id=branch)
        target = tmp_path / "page.html"
        memory.write_page(target, title="</title>" + "".join(payloads))
        page = target.read_text()
        clean = tmp_path / "clean.html"
        memory.write_page(clean, title="t")
    reader, expected = PageReader(page), PageReader(clean.read_text())
    assert reader.odd == expected.odd
    assert len(reader.scripts) == 2
    (kind, data), (_, script) = reader.scripts
    assert kind["type"] == "application/json"
    assert not set(data) & set("<>&\u2028\u2029")
    assert any(payloads[0] in str(row) for row in json.loads(data)["events"])
    assert script == expected.scripts[1][1]
    assert "default-src 'none'" in reader.policy
    assert "script-src 'sha256-" in reader.policy


_PIECES = (
    "{} {0} {0!r} {a.b} {a:>999999999} {a[0]} {{ }} {{x}} %s %(a)s %n %99999999d $x ${x} $$"
    " {ROLE_NAME} {experiences} {plan} {request} {task} {date} \\1 \\g<0> {%x%} #{x} `x` text"
).split()
TEMPLATES = st.lists(st.sampled_from([*_PIECES, " "]), min_size=1, max_size=8).map("".join)


def test_text_in_a_conversation_comes_out_as_it_went_in(tmp_path: Path) -> None:
    chance = random.Random(9)
    said = [f"say {''.join(chance.choices(_PIECES, k=6))} end" for _ in range(some((8, 30), 1)[-1])]
    script = Script([planner_reply("User", text, plan=text, plan_reasoning=text) for text in said])
    sizes = []
    config = {"planner.prompt_compression": False}
    project = make_project(tmp_path / "p", has_table=False)
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        for text in said:
            round_ = session.send_message(text)
            assert round_.state == "finished"
            assert round_.post_list[-1].message == text
            assert text in script.last()
            sizes.append(sum(len(str(message)) for message in script.prompts[-1]))
    grown = [after - before for before, after in pairwise(sizes)]
    assert max(grown) < 10 * max(map(len, said)) + 3_000


@given(TEMPLATES, TEMPLATES)
@settings(max_examples=examples(50))
def test_templates_of_ours_take_text_as_it_is(name: str, text: str) -> None:
    filled = fill("a {ONE} b {TWO} c {THREE}", ONE=name, TWO=text)
    assert filled == f"a {name} b {text} c {{THREE}}"
    shown = ExperienceGenerator.format_experience_in_prompt(
        "x {experiences} y", [(Experience(text, "1"), 1.0)]
    )
    assert text.strip() in shown
    content = {"name": "p", "description": text, "parameters": [], "returns": [], "examples": name}
    entry = PluginEntry.from_yaml_content(content)
    assert text.strip() in entry.format_prompt()
    assert " ".join(text.split()) in entry.spec.plugin_description()
