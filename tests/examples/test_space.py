"""The Space: what its functions return and, where Gradio is installed, the page itself, without a network."""

import re
from xml.etree import ElementTree

import pytest
import yaml

from hf_mwp.runtime import load_solver
from tests.examples.scripts import EXAMPLES, load_script


@pytest.fixture(scope="module")
def space():
    return load_script("space/app.py")


@pytest.fixture(scope="module")
def solver(solver_folder):
    return load_solver(solver_folder)


def test_text_of_a_problem_is_escaped(space, solver):
    html = space.show(solver, "<script>alert(1)</script> *4*个苹果 & 2个<b>梨</b>，一共？")
    assert "<script>" not in html and "<b>梨" not in html
    assert "&lt;script&gt;alert(<mark>1</mark>)" in html and "*<mark>4</mark>*个苹果 &amp; <mark>2</mark>个" in html
    assert '<div class="value">' in html
    assert "probability" in html
    assert html.index('class="value"') < html.index("<svg") < html.index("probability")


def test_results_are_in_the_chosen_language(space, solver):
    html = space.show(solver, "4个苹果和2个梨，一共？", "zh")
    assert "概率" in html
    assert "probability" not in html
    assert html.count("概率：") == 1  # its meaning is explained once
    assert "没有可以计算的数" in space.show(solver, "没有数", "zh")


def test_problem_without_an_answer_has_an_error(space, solver):
    assert re.search('class="error">[^<]*number', space.show(solver, "没有数"))
    assert 'class="error"' in space.show(solver, "")


def test_number_of_problems_is_limited(space, solver):
    html = space.show(solver, "\n".join(f"有{number}个和2个，一共几个？" for number in range(3, 40)))
    assert html.count("<article>") == 20
    assert "17 were left out" in html
    assert "too long" in space.show(solver, "字" * 400_000)


def test_tree_is_drawn(space):
    svg = ElementTree.fromstring(space.tree(["-", "*", "N0", "1", "N1"], ["120<", "25%"], "120 × 1 − 25%"))
    assert svg.get("aria-label") == "120 × 1 − 25%"
    name = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in svg.iter(f"{name}text")] == ["120<", "1", "×", "25%", "−"]
    assert len(list(svg.iter(f"{name}line"))) == 4
    # Leaves from left to right; an operator in the middle above its operands.
    first, second, times, third, minus = (float(text.get("x")) for text in svg.iter(f"{name}text"))
    assert first < second < third
    assert times == (first + second) / 2
    assert minus == (times + third) / 2


def test_header_of_the_readme_is_valid():
    header, text = (EXAMPLES / "space" / "README.md").read_text("utf-8").split("---\n")[1:]
    fields = yaml.safe_load(header)
    assert fields["sdk"] == "gradio" and (EXAMPLES / "space" / fields["app_file"]).is_file()
    assert len(fields["short_description"]) <= 60 and "SOLVER" in text


@pytest.mark.slow
def test_page_answers(space, solver, monkeypatch):
    gradio = pytest.importorskip("gradio")
    client = pytest.importorskip("gradio_client")
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    app = space.make_app(solver)
    theme = gradio.themes.Base(font=["system-ui"], font_mono=["monospace"])
    _, address, _ = app.launch(prevent_thread_lock=True, quiet=True, theme=theme)
    try:
        import httpx

        page = httpx.get(address).text
        assert "fonts.googleapis.com" not in re.sub(r"preconnect[^>]*", "", page)
        solver_client = client.Client(address, verbose=False)
        page = solver_client.predict("小明有4个苹果，又买了2个，一共有几个？", "en", api_name="/solve")
        assert "<mark>4</mark>" in page
        assert "<svg" in page
    finally:
        app.close()
