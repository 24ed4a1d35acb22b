"""Search engines, behind one method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, ClassVar
from urllib.parse import parse_qs, urljoin, urlsplit

from taskweaver.ext_role.web_search.http import WebError, WebResponse, get
from taskweaver.utils.markup.html import tamed


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A result of a search engine, with the engine's excerpt, which may be empty."""

    title: str
    url: str
    snippet: str


class DuckDuckGo:
    """The page that DuckDuckGo serves to browsers without scripts, without a key."""

    address: ClassVar[str] = "https://html.duckduckgo.com/html/"

    def search(self, query: str, count: int) -> list[SearchResult]:
        """Return at most `count` results, best first.

        Raises:
            WebError: If the engine gives none: offline, refused, too many requests.
        """
        answer = _asked("DuckDuckGo", self.address, {"q": query})
        page = answer.body.decode("utf-8", "replace")
        if answer.status == 202 or "anomaly-modal" in page:
            raise WebError("DuckDuckGo takes this for too many requests. Wait a while.")
        reader = _DuckDuckGoPage(self.address)
        reader.feed(tamed(page))
        reader.close()
        return reader.results[:count]


@dataclass(frozen=True, slots=True)
class Google:
    """Google's Custom Search JSON API."""

    address: ClassVar[str] = "https://www.googleapis.com/customsearch/v1"
    key: str = field(repr=False)
    engine_id: str

    def search(self, query: str, count: int) -> list[SearchResult]:
        """Return at most `count` results. Raises as `DuckDuckGo.search`."""
        _need(google_api_key=self.key, google_search_engine_id=self.engine_id)
        params = {"key": self.key, "cx": self.engine_id, "q": query, "num": str(min(count, 10))}
        found = _json("Google", _asked("Google", self.address, params))
        return _results(found.get("items"), "title", "link", "snippet")[:count]


@dataclass(frozen=True, slots=True)
class SearXNG:
    """A SearXNG server, whose `search.formats` must hold ``json``."""

    base_url: str

    def search(self, query: str, count: int) -> list[SearchResult]:
        """Return at most `count` results. Raises as `DuckDuckGo.search`."""
        _need(searxng_url=self.base_url)
        url = f"{self.base_url.rstrip('/')}/search"
        try:
            answer = _asked("SearXNG", url, {"q": query, "format": "json"})
        except _Refused as error:
            hint = "Does `search.formats` in its settings hold json?"
            raise WebError(f"{error} {hint}") from error
        return _results(_json("SearXNG", answer).get("results"), "title", "url", "content")[:count]


SearchProvider = DuckDuckGo | Google | SearXNG


class _Refused(WebError):
    """The engine does not want to answer us."""


def _need(**keys: str) -> None:
    missing = [f"web_search.{name}" for name, value in keys.items() if not value]
    if missing:
        raise WebError(f"{' and '.join(missing)} must be set in the configuration.")


def _asked(name: str, url: str, params: Mapping[str, str]) -> WebResponse:
    try:
        answer = get(url, params=params)
    except WebError as error:
        raise WebError(f"{name} cannot be reached: {error}.") from error
    if answer.status == 429:
        raise WebError(f"{name} says these are too many requests (429). Wait a while.")
    if answer.status in (400, 401, 403):
        raise _Refused(f"{name} refuses ({answer.status}){_reason(answer)}.")
    if not 200 <= answer.status < 300:
        raise WebError(f"{name} answers {answer.status}{_reason(answer)}.")
    return answer


def _reason(answer: WebResponse) -> str:
    """Return the message of an error's JSON body, or an empty text."""
    try:
        error = json.loads(answer.body)["error"]
        text = error["message"] if isinstance(error, dict) else error
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f": {str(text)[:300].rstrip('.')}"


def _json(name: str, answer: WebResponse) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise WebError(f"{name} answers something that is no JSON.") from error
    if not isinstance(found, dict):
        raise WebError(f"{name} answers JSON of an unknown form.")
    return found


def _results(items: object, title: str, url: str, snippet: str) -> list[SearchResult]:
    rows = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [
        SearchResult(*(str(row.get(name) or "") for name in (title, url, snippet)))
        for row in rows
        if str(row.get(url) or "").startswith(("http://", "https://"))
    ]


class _DuckDuckGoPage(HTMLParser):
    """Reads titles, addresses and snippets. Advertisements lead elsewhere and are left out."""

    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self._address = address
        self._found: list[dict[str, str]] = []
        self._part = ""
        self._depth = 0

    @property
    def results(self) -> list[SearchResult]:
        return [
            SearchResult(
                " ".join(row["title"].split()), row["url"], " ".join(row["snippet"].split())
            )
            for row in self._found
            if row["url"]
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        classes = (facts.get("class") or "").split()
        if "result__a" in classes:
            url = self._target(facts.get("href") or "")
            self._found.append({"title": "", "url": url, "snippet": ""})
            self._part, self._depth = "title", 1
        elif "result__snippet" in classes and self._found:
            self._part, self._depth = "snippet", 1
        elif self._part and tag not in ("br", "img", "wbr"):
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the parser's signature
        if self._part:
            self._depth -= 1
            self._part = self._part if self._depth else ""

    def handle_data(self, data: str) -> None:
        if self._part:
            self._found[-1][self._part] += data

    def _target(self, href: str) -> str:
        """Return where a link leads: results go through a page that counts clicks."""
        parts = urlsplit(urljoin(self._address, href))
        if parts.path == "/l/":
            return next(iter(parse_qs(parts.query).get("uddg", [])), "")
        is_own = (parts.hostname or "").endswith("duckduckgo.com")
        return "" if is_own or parts.scheme not in ("http", "https") else parts.geturl()
