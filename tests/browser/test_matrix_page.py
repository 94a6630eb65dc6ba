"""The matrix's page in a real browser without a network: mouse, keyboard, languages, links, hostile names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from patcher.records.load import load
from patcher.reporting.matrix_page import render_page
from tests.browser.conftest import Opened
from tests.reporting.matrices import HOSTILE, HOSTILE_SYMBOL, VERL, VLLM, sample

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.browser

Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def text() -> str:
    return render_page(sample(), load(), command="uky-patch check --matrix", date="2026-11-20", lang="en")


def cell(page: Opened, verl: str, vllm: str) -> WebElement:
    at = f"{VERL.index(verl)},{VLLM.index(vllm)}"
    return page.browser.find_element(By.CSS_SELECTOR, f'td[data-at="{at}"]')


def panel(page: Opened) -> WebElement:
    return page.browser.find_element(By.ID, "cell")


def active(page: Opened) -> str:
    return str(page.script("return document.activeElement.dataset.at || document.activeElement.id"))


def press(page: Opened, *keys: str) -> None:
    for key in keys:
        page.browser.switch_to.active_element.send_keys(key)


def test_a_click_opens_the_findings_of_the_cell(opened: Open, text: str) -> None:
    page = opened(text)
    assert not panel(page).is_displayed()
    cell(page, "0.7.0", "0.20.2").click()
    shown = panel(page).text
    assert "verl 0.7.0 on vllm 0.20.2" in shown
    assert "works with the records (2)" in shown
    for part in (
        "67 uses of vllm looked at, 3 of them not decidable.",
        "vllm_rollout.py:205",
        "vllm.a.WorkerWrapperBase(vllm_config)",
        "argument-removed",
        "since 0.14.0",
        "repaired by vllm-worker-wrapper-config – ",
        "vllm.a.WorkerWrapperBase has no execute_method",
        "since 0.18.0",
    ):
        assert part in shown
    titles = {record.id: record.title for record in load()}
    assert titles["vllm-run-method"] in shown
    assert "lora" not in shown
    cell(page, "0.6.1", "0.18.0").click()
    assert "vllm.lora.models" in panel(page).text
    assert "no record repairs this" in panel(page).text
    assert "1 break left" in panel(page).text


def test_marks_and_colours_tell_the_three_states_apart(opened: Open, text: str) -> None:
    page = opened(text)
    cells = [cell(page, "0.8.0", "0.20.2"), cell(page, "0.7.0", "0.18.0"), cell(page, "0.6.1", "0.18.0")]
    assert [one.text for one in cells] == ["✓", "+2", "×1"]
    assert len({one.value_of_css_property("background-color") for one in cells}) == 3
    assert [one.text for one in (cell(page, "0.7.0", "0.12.0"),)] == ["✓\n1"]
    page.browser.find_element(By.CSS_SELECTOR, 'input[value="as_is"]').click()
    assert [one.text for one in cells] == ["✓", "×2", "×3"]
    assert cell(page, "0.6.1", "0.19.0").text == "–"
    assert "vllm 0.19.0 is left out: no release of vllm was found" in page.browser.page_source


def test_the_keyboard_does_all_that_the_mouse_does(opened: Open, text: str) -> None:
    page = opened(text)
    for _ in range(40):
        press(page, Keys.TAB)
        if active(page) == "0,0":
            break
    assert active(page) == "0,0"
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_UP, Keys.END, Keys.ARROW_RIGHT)
    assert active(page) == "0,4"
    outline = page.script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    press(page, Keys.ARROW_DOWN, Keys.ENTER)
    assert active(page) == "cell"
    assert "verl 0.7.0 on vllm 0.20.2" in panel(page).text
    press(page, Keys.ESCAPE)
    assert not panel(page).is_displayed()
    assert active(page) == "1,4"
    press(page, Keys.CONTROL + Keys.HOME)
    assert active(page) == "0,0"
    reachable = page.script("return document.querySelectorAll('td[tabindex=\"0\"]').length")
    assert reachable == 1


def test_each_cell_says_in_words_what_it_is(opened: Open, text: str) -> None:
    page = opened(text)
    named = cell(page, "0.6.1", "0.20.2").get_attribute("aria-label")
    expected = "1 break left with the records applied; 2 findings off the plain path"
    assert named == f"verl 0.6.1 on vllm 0.20.2: {expected}"
    roles = page.script(
        "return [...document.querySelectorAll('td')].every(td => td.ariaLabel && td.role === 'gridcell')"
    )
    assert roles is True


def test_a_link_leads_to_a_cell_and_back_goes_back(opened: Open, text: str) -> None:
    page = opened(text, "#0.7.0/0.20.2")
    assert "verl 0.7.0 on vllm 0.20.2" in panel(page).text
    cell(page, "0.6.1", "0.14.0").click()
    assert page.browser.current_url.endswith("#0.6.1/0.14.0")
    page.browser.back()
    assert "verl 0.7.0 on vllm 0.20.2" in panel(page).text


@pytest.mark.parametrize("tail", ["#0.7.0", "#9.9/9.9", "#%E0%A4%A", "#<img src=x>/0.20.2"])
def test_a_link_that_leads_nowhere_opens_nothing(opened: Open, text: str, tail: str) -> None:
    page = opened(text, tail)
    assert not panel(page).is_displayed()


def test_findings_are_filtered_by_severity(opened: Open, text: str) -> None:
    page = opened(text, "#0.7.0/0.20.2")
    assert "vllm.deep_gemm.helper" in panel(page).text
    assert cell(page, "0.7.0", "0.20.2").text == "+2\n2"
    page.browser.find_element(By.CSS_SELECTOR, 'input[value="optional"]').click()
    assert "vllm.deep_gemm.helper" not in panel(page).text
    assert "execute_method" in panel(page).text
    assert cell(page, "0.7.0", "0.20.2").text == "+2\n1"
    for severity in ("break", "guarded", "inert"):
        page.browser.find_element(By.CSS_SELECTOR, f'input[value="{severity}"]').click()
    assert "Nothing of the kinds chosen above." in panel(page).text


def test_both_languages(opened: Open, text: str) -> None:
    page = opened(text, "?lang=zh#0.7.0/0.20.2")
    assert page.script("return document.documentElement.lang") == "zh-CN"
    assert "verl 0.7.0 在 vllm 0.20.2 上" in panel(page).text
    assert "vllm.a.WorkerWrapperBase 中没有 execute_method" in panel(page).text
    titles = {record.id: record.zh.title for record in load() if record.zh is not None}
    assert titles["vllm-run-method"] in panel(page).text
    body = page.browser.find_element(By.TAG_NAME, "body")
    assert "没有找到 vllm 的任何发行版" in body.text
    page.browser.find_element(By.CSS_SELECTOR, '[data-lang="en"]').click()
    assert "verl 0.7.0 on vllm 0.20.2" in panel(page).text
    left = [line for line in body.text.splitlines() if any("\u4e00" <= char <= "\u9fff" for char in line)]
    assert left == ["English 中文"]


def test_hostile_names_are_text_and_nothing_more(opened: Open, text: str) -> None:
    page = opened(text, "#0.7.0/0.20.2")
    assert HOSTILE in panel(page).text.replace("\n", "")
    assert HOSTILE_SYMBOL.partition("\u2028")[0] in panel(page).text
    assert "{{ 7*7 }}" in panel(page).text
    assert page.browser.title == "verl on vllm"
    assert (
        page.script("return document.images.length + document.querySelectorAll('[onerror], [onmouseover]').length") == 0
    )
    assert page.script("return document.scripts.length") == 2


def test_a_script_that_got_in_would_not_run(opened: Open, text: str) -> None:
    page = opened(text)
    page.script("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    assert page.browser.title == "verl on vllm"
    assert any("Content Security Policy" in told for told in page.complaints())
    page.requests()


def test_nothing_is_cut_off_when_printed(opened: Open, text: str) -> None:
    page = opened(text, "#0.7.0/0.20.2")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert panel(page).is_displayed()
        cut = page.script("const f = document.querySelector('.frame'); return f.scrollWidth - f.clientWidth")
        assert cut <= 0
        assert not page.browser.find_element(By.TAG_NAME, "nav").is_displayed()
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_dark_and_light_both_have_readable_cells(opened: Open, text: str) -> None:
    page = opened(text)
    for scheme in ("light", "dark"):
        wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
        for verl, vllm in (("0.8.0", "0.20.2"), ("0.7.0", "0.18.0"), ("0.6.1", "0.18.0")):
            one = cell(page, verl, vllm)
            colours = [one.value_of_css_property(name) for name in ("color", "background-color")]
            assert contrast(*colours) >= 4.5, (scheme, verl, colours)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two CSS colours, by WCAG."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
