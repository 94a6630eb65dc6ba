"""A real browser that can reach nothing, and pages opened in it from files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests import tools

NOWHERE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    program, driver = tools.find("chromium"), tools.find("chromedriver")
    if program is None or driver is None:
        if os.environ.get("UKY_PATCH_REQUIRE_BROWSER"):
            pytest.fail("chromium and chromedriver are to be installed (Debian: chromium, chromium-driver)")
        tools.require("chromium", "chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    profile = tmp_path_factory.mktemp("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000", *NOWHERE):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with_driver = webdriver.Chrome(options=options, service=Service(driver))
    with_driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    with_driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield with_driver
    with_driver.quit()


class Opened:
    """A page in the browser; `close` asserts that it asked for nothing but itself and had no errors."""

    def __init__(self, browser: webdriver.Chrome, url: str) -> None:
        self.browser, self.url = browser, url
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get("about:blank")
        browser.get(url)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        """The URLs asked for so far, the page's own left out."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        urls = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        page = self.url.partition("#")[0].partition("?")[0]
        return [url for url in urls if url.partition("#")[0].partition("?")[0] != page and not url.startswith("data:")]

    def script(self, text: str, *arguments: Any) -> Any:
        return self.browser.execute_script(text, *arguments)


@pytest.fixture
def opened(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Open a page's text from a file; at the end it must have complained of nothing and fetched nothing."""
    pages: list[Opened] = []

    def open_page(text: str, tail: str = "") -> Opened:
        file = tmp_path / f"page{len(pages)}.html"
        file.write_text(text, encoding="utf-8")
        pages.append(Opened(browser, file.as_uri() + tail))
        return pages[-1]

    yield open_page
    for page in pages[-1:]:
        assert page.complaints() == []
        assert page.requests() == []
