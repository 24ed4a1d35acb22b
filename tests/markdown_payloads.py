"""Markdown that runs script or loads something from elsewhere in a reader that lets it."""

from __future__ import annotations

RUN = "document.title='RAN'"
LEAK = "http://127.0.0.1:9/leak"
SCRIPT = f"<script>{RUN}</script>"
ERROR = f'<img src=x: onerror="{RUN}">'

SCRIPTS = (
    SCRIPT,
    f"<SCRIPT\n>{RUN}</SCRIPT\n>",
    ERROR,
    f'<svg onload="{RUN}"></svg>',
    f"<svg><script>{RUN}</script></svg>",
    f"<math><mtext></mtext><script>{RUN}</script></math>",
    f'<details open ontoggle="{RUN}">x</details>',
    f'<input autofocus onfocus="{RUN}">',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<body onload="{RUN}">',
    f"<b>x</b>{SCRIPT}",
    f"~~~\n```\n~~~\n{SCRIPT}",
    f"```\n~~~\n```\n{SCRIPT}",
    f"``` a`b\n{SCRIPT}",
    f"```x\n```\n{SCRIPT}\n```",
    f"- a\n  ```\n{SCRIPT}",
    f"> ```\n{SCRIPT}",
    f"    ```\n\n{SCRIPT}",
    f"`\n\n{SCRIPT}\n\n`",
    f"``a`{ERROR}",
    f"\\`{ERROR}`",
    f"[x]({ERROR})",
    f"| a |\n|---|\n| {ERROR} |",
    f"a\n{SCRIPT}\n===",
    f"<!-- x --!>{SCRIPT}",
    f"<!-->{SCRIPT}-->",
    f"<!--\n\n-->{SCRIPT}",
    f"<div>\n\n{SCRIPT}\n\n</div>",
    f"</details>{SCRIPT}",
    f"<template></template>{SCRIPT}",
    f"\u2028{SCRIPT}",
    f"~~~\u2028~~~\n{SCRIPT}",
    f"```\r```\r{SCRIPT}",
    f"\x0c```\n{SCRIPT}",
)
LOADS = (
    f"![x]({LEAK}.png)",
    f"![x](<{LEAK}?a b>)",
    f"![x][r]\n\n[r]: {LEAK}.png",
    f'![x]({LEAK}.svg "title")',
    f"[![x]({LEAK}.png)](https://example.org)",
    f"\\``![x]({LEAK}.png)`",
    f"<img src={LEAK}.png>",
    f"<link rel=stylesheet href={LEAK}.css>",
    f"<style>@import '{LEAK}.css';</style>",
    f"<style>body {{ background: url({LEAK}.png); }}</style>",
    f"<div style='background: url({LEAK}.png)'>x</div>",
    f"<iframe src={LEAK}></iframe>",
    f"<object data={LEAK}></object>",
    f"<svg><image href={LEAK}.png /></svg>",
    f"~~~\n```\n~~~\n\n![x]({LEAK}.png)",
    f"<meta http-equiv=refresh content='0;url={LEAK}'>",
    f"<base href={LEAK}/>\n\n![x](a.png)",
)
LINKS = (
    "[x](javascript:document.title='RAN')",
    "[x](java&Tab;script:document.title='RAN')",
    "[x](javascript&colon;document.title='RAN')",
    "[x](<\x01javascript:document.title='RAN'>)",
    "<javascript:document.title='RAN'>",
    "[x][r]\n\n[r]: javascript:document.title='RAN'",
    "<a href=javascript:document.title='RAN'>x</a>",
    "[x](data:text/html,<script>1</script>)",
    "[x](file:///etc/passwd)",
    "[x](blob:null/1)",
    "<form action=javascript:document.title='RAN'><button>x</button></form>",
)
PAYLOADS = (*SCRIPTS, *LOADS, *LINKS)
