"""The page of a fork in a real browser without a network: folding, links, keyboard, copying, widths, hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from patcher.cli.app import run
from tests.browser.conftest import Opened
from tests.browser.looks import SCHEMES, faint, sideways, sized, without_scripts
from tests.cli.conftest import write_records, write_tree

pytestmark = pytest.mark.browser

Open = Callable[..., Opened]
PLANTED = "<script>document.title='owned'<img src=x onerror=document.title=1>"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a fork that breaks in three files, one with a planted name, with a record and a draft."""
    folder = tmp_path_factory.mktemp("fork")
    package = folder / "sources/vllm"
    (package / "utils").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text('__version__ = "2.1"\n')
    (package / "utils/__init__.py").write_text("def get_uri(host, port): ...\n")
    (package / "utils/parsers.py").write_text("class Parser: ...\nclass Reader: ...\n")
    records = write_records(folder / "records")
    moved = records / "utils-moved.toml"
    upstream = 'upstream = "https://github.com/volcengine/verl/pull/1"\n[when]'
    moved.write_text(moved.read_text().replace("[when]", upstream, 1))
    tree = write_tree(folder / "fork", "server")
    (tree / "verl/reader.py").write_text("from vllm.utils import Reader\n")
    (tree / f"verl/{PLANTED}.py").write_text("from vllm.gone import Nothing\n" * 3)
    (tree / "verl/trainer").mkdir()
    (tree / "verl/trainer/__init__.py").touch()
    (tree / "verl/trainer/main_ppo.py").write_text("import verl.server, verl.reader\n\ndef main(): ...\n")
    file = folder / "page.html"
    given = ["--root", str(tree), "--patches", str(records), "--assume", "vllm==2.1", "--format", "json"]
    asked = ["check", "--against", f"vllm={package.parent}", "--no-since", "--draft", str(folder / "drafts")]
    assert run([*given, *asked, "--html", str(file)]) == 1
    return Path(file).read_text(encoding="utf-8")


def shown(page: Opened, selector: str) -> list[str]:
    return [one.text for one in page.browser.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()]


def unfold(page: Opened) -> None:
    page.script("document.querySelectorAll('details').forEach(one => { one.open = true })")


def test_the_verdict_comes_first_and_links_lead_to_the_edits(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en")
    assert shown(page, "h2")[0] == "Breaks left after apply: 1, of 2"
    (link,) = (one for one in page.browser.find_elements(By.CSS_SELECTOR, ".repair a") if one.text == "utils-moved")
    link.click()
    diff = page.browser.find_element(By.CSS_SELECTOR, "#record-utils-moved .diff")
    assert diff.is_displayed()
    assert "-from vllm.utils import Parser, get_uri\n" in diff.text
    assert [one.text for one in diff.find_elements(By.CSS_SELECTOR, ".added .k")][:2] == ["from", "import"]
    assert "https://github.com/volcengine/verl/pull/1" in shown(page, "#record-utils-moved a")


def test_a_link_from_outside_opens_the_record(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en#record-utils-moved")
    assert page.browser.find_element(By.CSS_SELECTOR, "#record-utils-moved .diff").is_displayed()


def test_planted_names_are_text_and_no_script_of_theirs_runs(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en")
    unfold(page)
    assert any(PLANTED in one for one in shown(page, "summary"))
    assert page.browser.title == "verl 99.1 against vllm 2.1"
    assert page.script("return document.images.length + document.querySelectorAll('[onerror]').length") == 0
    assert page.script("return document.scripts.length") == 1
    assert page.complaints() == []
    page.script("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    assert page.browser.title == "verl 99.1 against vllm 2.1"
    assert any("Content Security Policy" in told for told in page.complaints())
    page.requests()


def test_a_command_is_copied(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en")
    command = page.browser.find_element(By.CSS_SELECTOR, ".command pre").text
    button = page.browser.find_element(By.CSS_SELECTOR, ".command button")
    button.send_keys(Keys.ENTER)
    page.script(
        "const box = document.createElement('textarea'); box.id = 'box'; document.body.prepend(box); box.focus()"
    )
    page.browser.find_element(By.ID, "box").send_keys(Keys.CONTROL + "v")
    assert page.browser.find_element(By.ID, "box").get_property("value") == command
    assert button.text == "copied"


def test_the_keyboard_reaches_and_folds_everything(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en")
    reached = set()
    for _ in range(60):
        page.browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.script("return document.activeElement.tagName"))
    assert {"BUTTON", "A", "SUMMARY"} <= reached
    summary = page.browser.find_element(By.CSS_SELECTOR, "#records summary")
    summary.send_keys(Keys.ENTER)
    assert shown(page, "#records .diff")
    every = page.browser.find_element(By.CSS_SELECTOR, 'button[data-open="records"]')
    every.send_keys(Keys.ENTER)
    assert len(shown(page, "#records .diff")) == 2
    every.send_keys(Keys.ENTER)
    assert not page.browser.find_element(By.ID, "record-utils-moved").is_displayed()


def test_both_languages(opened: Open, text: str) -> None:
    page = opened(text, "?lang=zh")
    assert page.script("return document.documentElement.lang") == "zh-CN"
    assert page.browser.title == "verl 99.1 对 vllm 2.1"
    assert "名称已移动" in page.browser.find_element(By.TAG_NAME, "main").text
    page.browser.find_element(By.CSS_SELECTOR, '[data-lang="en"]').click()
    lines = page.browser.find_element(By.TAG_NAME, "body").text.splitlines()
    left = [line for line in lines if any("\u4e00" <= char <= "\u9fff" for char in line)]
    assert left == ["English 中文"]


def test_without_scripts_all_can_be_read_and_unfolded(opened: Open, text: str) -> None:
    page = opened(text)
    with without_scripts(page):
        assert not any("copy" in one for one in shown(page, "button"))
        page.browser.find_element(By.CSS_SELECTOR, "#records summary").click()
        assert shown(page, "#records .diff")


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_nothing_sticks_out_at_any_width(opened: Open, text: str, width: int) -> None:
    page = opened(text, "?lang=en")
    with sized(page, width, 900):
        unfold(page)
        assert sideways(page) == 0
        out = page.script(
            "return [...document.querySelectorAll('main :not(pre *)')].filter(one =>"
            " one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 80))"
        )
        assert out == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_text_can_be_read(opened: Open, text: str, scheme: str) -> None:
    page = opened(text, "?lang=en")
    unfold(page)
    assert faint(page, scheme) == []


def test_nothing_is_cut_off_when_printed(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en")
    unfold(page)
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        cut = page.script(
            "return [...document.querySelectorAll('pre')].filter(p => p.scrollWidth > p.clientWidth).length"
        )
        assert cut == 0
        assert not any("copy" in one for one in shown(page, "button"))
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
