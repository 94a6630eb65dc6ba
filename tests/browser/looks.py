"""How a page looks: widths, colours, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.browser.conftest import Opened

SCHEMES = ("light", "dark")
_COLOURS = """
const solid = (colour) => !/, 0\\)$|^transparent$/.test(colour);
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (solid(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = {};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.getClientRects().length || element.closest("script, style")) continue;
  const pair = [getComputedStyle(element).color, behind(element)];
  found[pair.join("|")] = [...pair, walker.currentNode.data.trim().slice(0, 40)];
}
return Object.values(found);
"""


@contextmanager
def sized(page: Opened, width: int, height: int) -> Iterator[None]:
    """The page in a window of that size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def without_scripts(page: Opened) -> Iterator[None]:
    """The page, loaded anew in a browser that runs no script of it."""
    page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.browser.refresh()
        yield
    finally:
        page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def sideways(page: Opened) -> int:
    """By how many pixels the page itself is wider than its window."""
    return int(page.script("const root = document.documentElement; return root.scrollWidth - root.clientWidth"))


def faint(page: Opened, scheme: str) -> list[tuple[str, float]]:
    """The texts in view, with their contrast, that have less of it than WCAG AA asks for."""
    wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)
    told = [(text, round(contrast(front, back), 2)) for front, back, text in page.script(_COLOURS)]
    assert told
    return [one for one in told if one[1] < 4.5]


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two CSS colours, by WCAG."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
