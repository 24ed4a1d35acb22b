"""The components of the page in all their states, foreign text among them."""

from __future__ import annotations

import re
from pathlib import Path

from page_axe import COLOURS, FOUND, load_axe
from page_tab import page_tab

from taskweaver.page.assets import page_files
from taskweaver.page.bundle import bundle

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
TRUSTED = "require-trusted-types-for 'script'; trusted-types 'none'"
ALL = "{rules: {'duplicate-id': {enabled: false}, 'duplicate-id-aria': {enabled: false}}}"


def states_page() -> str:
    """Return a page with all states, made of the modules of the page."""
    found = page_files().files
    sources = {path: file.content.decode() for path, file in found.items() if path.endswith(".js")}
    sources["states.js"] = Path(__file__).with_name("states.js").read_text("utf-8")
    styles = [file.content.decode() for path, file in found.items() if path.endswith(".css")]
    style = "\n".join(styles)
    style += ".round { content-visibility: visible !important; }"
    script = re.sub(r"<(?=!--|/?script)", r"\\x3c", bundle(sources, "states.js"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>States</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY} {TRUSTED}">'
        f'<style>{style}</style></head><body class="read-only"><div id="app"></div>'
        f'<div id="live" class="unseen"></div><script>{script}</script></body></html>'
    )


def test_all_states_are_drawn_and_foreign_text_is_text(tmp_path: Path) -> None:
    (tmp_path / "states.html").write_text(states_page(), "utf-8", errors="surrogatepass")
    with page_tab() as tab:
        views = ((1280, "light", ALL), (1280, "dark", COLOURS), (400, "light", ALL))
        for width, mode, rules in views:
            tab.tab.view(width, mode)
            if rules == ALL:  # another theme has other colours alone
                tab.tab.load(tmp_path / "states.html")
                tab.until("document.body.dataset.ready === 'yes'")
                load_axe(tab)
            assert tab.value("document.querySelectorAll('[data-state]').length") > 20
            assert tab.value("document.title") == "States"
            assert tab.value("document.querySelectorAll('script, img[src=x]').length") == 1
            assert tab.value("document.documentElement.scrollWidth <= innerWidth")
            found = tab.value(FOUND.replace("PART", "document").replace("RULES", rules))
            bad = [one for one in found if one.startswith(("serious", "critical"))]
            assert bad == [], (width, mode)
        assert [one for one in tab.tab.complaints if "exception" in one.lower()] == []
