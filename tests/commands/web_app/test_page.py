"""The page in a headless Chromium; skipped where there is none, or no playwright."""

import shutil

import pytest


pytestmark = pytest.mark.slow
TEXT = "小明有4个苹果，又买了2个，一共有几个？"
WIDTHS = (390, 1200)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_click_solves_the_problem(browser, address, tmp_path, width):
    page = browser.new_page(viewport={"width": width, "height": 800}, locale="zh-CN")
    urls = []
    errors = []
    page.on("request", lambda request: urls.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address + "/")
    page.fill("#text", TEXT)
    page.click("button.main")
    page.wait_for_selector(".value")
    assert page.locator("mark").all_inner_texts() == ["4", "2"]
    assert page.locator("svg rect").count() >= 1
    assert page.locator(".equation").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not errors
    assert all(url.startswith((address, "data:")) for url in urls)
    page.screenshot(path=str(tmp_path / f"{width}.png"), full_page=True)
    page.close()


def test_html_in_a_problem_is_shown_as_text(browser, address):
    page = browser.new_page()
    page.goto(address + "/")
    page.fill("#text", "<img src=x onerror=\"document.title='run'\"> *4* 和 2")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".problem")
    assert page.title() == "hf_mwp"
    assert page.locator("img").count() == 0
    assert "*4*" in page.locator(".text").inner_text()
    assert "<img" in page.locator(".text").inner_text()
    page.close()
