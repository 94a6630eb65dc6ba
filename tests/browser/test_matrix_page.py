"""The matrix's page in a real browser without a network: mouse, keyboard, languages, links, hostile names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from patcher.records.load import load
from patcher.report.matrix_page import matrix_page
from tests.browser.conftest import Opened
from tests.browser.looks import SCHEMES, contrast, faint, sideways, sized, without_scripts
from tests.report.matrices import HOSTILE, HOSTILE_SYMBOL, VERL, VLLM, sample, wide

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.browser

Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def text() -> str:
    return matrix_page(sample(), load(), command="uky-patch check --matrix", date="2026-11-20", lang="en")


@pytest.fixture(scope="module")
def wide_text() -> str:
    return matrix_page(wide(), load(), command="uky-patch check --matrix", date="2026-11-20", lang="en")


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


def shown(page: Opened, selector: str) -> list[str]:
    return [one.text for one in page.browser.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()]


def test_equal_neighbours_are_folded_and_can_be_unfolded(opened: Open, wide_text: str) -> None:
    page = opened(wide_text, "?lang=en")
    assert shown(page, "thead th[data-column]") == [
        *("0.0.0 – 0.4.0", "0.5.0 – 0.9.0", "0.10.0 – 0.14.0"),
        *("0.15.0 – 0.19.0", "0.20.0 – 0.24.0", "0.25.0 – 0.29.0"),
    ]
    assert shown(page, "tbody th") == ["0.6.0 – 0.6.1", "0.7.0"]
    named = page.browser.find_element(By.CSS_SELECTOR, 'td[data-at="0,5"]').get_attribute("aria-label")
    assert named is not None
    assert named.startswith("verl 0.6.0 – 0.6.1 on vllm 0.5.0 – 0.9.0: works with the records (1)")
    button = page.browser.find_element(By.CSS_SELECTOR, 'th[data-column="5"] button')
    button.send_keys(Keys.ENTER)
    assert shown(page, "thead th[data-column]")[1:6] == ["0.5.0", "0.6.0", "0.7.0", "0.8.0", "0.9.0"]
    page.browser.find_element(By.CSS_SELECTOR, 'td[data-at="0,5"]').click()
    press(page, Keys.ESCAPE, Keys.ARROW_RIGHT)
    assert active(page) == "0,6"
    button.click()
    assert len(shown(page, "thead th[data-column]")) == 6
    assert page.script("return document.querySelectorAll('td[tabindex=\"0\"]').length") == 1
    page.browser.find_element(By.ID, "unfold").click()
    assert len(shown(page, "thead th[data-column]")) == 30
    assert len(shown(page, "tbody th")) == 3


def test_the_keyboard_passes_over_what_is_folded(opened: Open, wide_text: str) -> None:
    page = opened(wide_text, "?lang=en")
    page.script("document.querySelector('td[tabindex=\"0\"]').focus()")
    press(page, Keys.ARROW_RIGHT)
    assert active(page) == "0,5"
    press(page, Keys.END)
    assert active(page) == "0,25"
    press(page, Keys.ARROW_DOWN)
    assert active(page) == "2,25"


def test_a_link_to_a_folded_cell_unfolds_it(opened: Open, wide_text: str) -> None:
    page = opened(wide_text, "?lang=en#0.6.1/0.7.0")
    assert page.browser.find_element(By.CSS_SELECTOR, 'td[data-at="1,7"]').is_displayed()
    assert "verl 0.6.1 on vllm 0.7.0" in panel(page).text


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_cells_hold_what_is_in_them_and_the_page_has_no_sideways_scroll(
    opened: Open, wide_text: str, width: int
) -> None:
    page = opened(wide_text, "?lang=en")
    with sized(page, width, 900):
        page.browser.find_element(By.ID, "unfold").click()
        over = page.script(
            "return [...document.querySelectorAll('td')].filter(td => td.scrollWidth > td.clientWidth"
            " || td.scrollHeight > td.clientHeight || [...td.children].some(one => {"
            "   const [inner, outer] = [one.getBoundingClientRect(), td.getBoundingClientRect()];"
            "   return inner.width && (inner.left < outer.left - .5 || inner.right > outer.right + .5); })).length"
        )
        assert over == 0
        assert sideways(page) == 0
        page.browser.find_element(By.CSS_SELECTOR, 'td[data-at="0,16"]').click()
        assert sideways(page) == 0


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_the_table_stays_in_view_when_a_cell_opens(opened: Open, wide_text: str, width: int) -> None:
    page = opened(wide_text, "?lang=en")
    with sized(page, width, 900):
        one = page.browser.find_element(By.CSS_SELECTOR, 'td[data-at="0,15"]')
        page.script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", one)
        before = page.script("return scrollY")
        one.click()
        there = page.script(
            "const box = (one) => one.getBoundingClientRect();"
            "const [td, panel] = [box(arguments[0]), box(document.getElementById('cell'))];"
            "const frame = box(document.querySelector('.frame'));"
            "return { apart: td.right <= panel.left || td.bottom <= panel.top,"
            " down: td.top >= 0 && td.bottom <= innerHeight,"
            " across: td.left >= frame.left && td.right <= frame.right + 1,"
            " panel: panel.top >= 0 && panel.bottom <= innerHeight + 1 }",
            one,
        )
        assert there == {"apart": True, "down": True, "across": True, "panel": True}
        if width > 400:  # There the page moves up by as much as shows the cell above what has opened.
            assert page.script("return scrollY") == before
        assert panel(page).is_displayed()


def test_the_commands_of_a_cell_are_for_its_pair(opened: Open, text: str) -> None:
    page = opened(text, "?lang=en#0.7.0/0.20.2")
    assert shown(page, "#cell pre") == [
        "uky-patch --assume vllm==0.20.2 apply",
        "uky-patch check --verl 0.7.0 --against vllm==0.20.2",
    ]
    cell(page, "0.8.0", "0.20.2").click()
    assert shown(page, "#cell pre") == ["uky-patch check --verl 0.8.0 --against vllm==0.20.2"]


def test_without_scripts_the_findings_unfold_by_verl_release(opened: Open, text: str) -> None:
    page = opened(text)
    with without_scripts(page):
        page.browser.find_element(By.CSS_SELECTOR, "details summary").click()
        told = page.browser.find_element(By.CSS_SELECTOR, "details").text
        assert "vllm.lora.models" in told
        assert "0.14.0 – 0.18.0, 0.20.2 · vllm-worker-wrapper-config" in told
        assert shown(page, "button") == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_text_can_be_read(opened: Open, text: str, scheme: str) -> None:
    page = opened(text, "?lang=en#0.7.0/0.20.2")
    page.script("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert faint(page, scheme) == []
