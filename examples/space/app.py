"""
A Space that solves math word problems, with Gradio and `hf_mwp.runtime`: neither PyTorch nor a GPU is needed.

    SOLVER=model_cards/mwp-student-3L-gts-math23k-gemma python examples/space/app.py
"""

import os
import sys
import zipfile
from html import escape
from pathlib import Path
from typing import Any


HERE = Path(__file__).parent
for wheel in HERE.glob("hf_mwp-*.whl"):
    # pip would also install PyTorch.
    zipfile.ZipFile(wheel).extractall(HERE / ".packages")
    sys.path.insert(0, str(HERE / ".packages"))

from hf_mwp.commands.web_app.local_server import MAX_BODY  # noqa: E402
from hf_mwp.commands.web_app.sentences import page_words  # noqa: E402
from hf_mwp.commands.web_app.server import EXAMPLES, MAX_PROBLEMS, SIGNS, marked_parts, solve  # noqa: E402
from hf_mwp.runtime import RuntimeSolver, load_solver  # noqa: E402
from hf_mwp.runtime.problems import MathWordProblem  # noqa: E402


LANGUAGES = [("English", "en"), ("中文", "zh")]
LEVEL = 52  # height of a level, in pixels
LEAF = 56  # minimum width of a leaf, in pixels
STYLE = """
<style>
.mwp mark { background: #fff1c2; color: #1c2330; border-radius: 4px; padding: 0 3px; }
.mwp article + article { margin-top: 12px; padding-top: 12px; border-top: 1px solid #98a2b3; }
.mwp .best { display: flex; flex-wrap: wrap; gap: 8px 32px; align-items: center; }
.mwp .solution { flex: 1 1 200px; min-width: 0; overflow-wrap: anywhere; }
.mwp .value { font-size: 44px; font-weight: 700; line-height: 1.2; }
.mwp .decimal { margin-left: 10px; font-size: 22px; opacity: 0.7; }
.mwp .written { font-size: 22px; }
.mwp .soft { font-size: 14px; opacity: 0.75; }
.mwp .warning { color: #a66a00; }
.mwp .error { color: #c2452d; }
.mwp svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.mwp li { overflow-wrap: anywhere; }
</style>
"""


def find_solver() -> RuntimeSolver:
    """Load the solver from the folder or Hub repository in `SOLVER`, by default from the folder `solver`."""
    name = os.environ.get("SOLVER", str(HERE / "solver"))
    if not Path(name).is_dir() and name.count("/") == 1:
        from huggingface_hub import snapshot_download

        name = snapshot_download(name)
    return load_solver(name)


def show(solver: RuntimeSolver, text: str, language: str = "en") -> str:
    """Return the answers to problems, one per line, as HTML in a language, with the problems' text escaped."""
    words = page_words()[language]
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BODY:
        return f'{STYLE}<div class="mwp"><p class="error">{words["too_long"]}</p></div>'
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    blocks = []
    for index, line in enumerate(lines[:MAX_PROBLEMS]):
        blocks.append(_problem(solver, line, language, explains=index == 0))
    num_skipped = len(lines) - MAX_PROBLEMS
    if num_skipped > 0:
        notice = words["too_many"].format(limit=MAX_PROBLEMS, skipped=num_skipped)
        blocks.insert(0, f'<p class="error">{notice}</p>')
    return f'{STYLE}<div class="mwp">{"".join(blocks)}</div>'


def _problem(solver: RuntimeSolver, text: str, language: str, explains: bool) -> str:
    """Return the HTML of a problem: answer, equation and tree first, like the page of `hf-mwp app`. If it `explains`,
    a line says what the percentages mean."""
    words = page_words()[language]
    problem = solver.reader.problem(text)
    solution = solve(solver, text)
    answers = solution["answers"]
    blocks = [f"<p>{_marked_text(problem)}</p>"]
    if answers:
        blocks.append(_best(answers[0], language))
    else:
        blocks.append(f'<p class="error">{escape(solution["error"][language])}</p>')
    for warning in solution["warnings"]:
        blocks.append(f'<p class="warning">{escape(warning[language])}</p>')
    if answers:
        blocks.append(f'<p class="soft">{_certainty(answers[0], language)} · {solution["milliseconds"]:.0f} ms</p>')
    if answers and explains:
        measure = "plausibility" if "plausibility" in answers[0] else "probability"
        blocks.append(f'<p class="soft">{words[f"{measure}_meaning"]}</p>')
    items = []
    for answer in answers[1:]:
        certainty = f'<span class="soft">{_certainty(answer, language)}</span>'
        items.append(f"<li><b>{escape(answer['value'])}</b> {escape(answer['written'])} {certainty}</li>")
    if items:
        blocks.append(f"<details><summary>{words['candidates']}</summary><ul>{''.join(items)}</ul></details>")
    return f"<article>{''.join(blocks)}</article>"


def _best(answer: dict[str, Any], language: str) -> str:
    """Return the HTML of the best answer with its equation and tree."""
    label = page_words()[language]["tree"].format(equation=answer["written"])
    decimal = ""
    if answer["decimal"]:
        decimal = f'<span class="decimal">{answer["decimal"]}</span>'
    value = f'<div class="value">{escape(answer["value"])}{decimal}</div>'
    written = f'<div class="written">{escape(answer["written"])}</div>'
    svg = tree(answer["prefix"], answer["numbers"], label)
    return f'<div class="best"><div class="solution">{value}{written}</div>{svg}</div>'


def _marked_text(problem: MathWordProblem) -> str:
    """Return the text as HTML with its numbers marked; the text of a problem that is too long is empty."""
    if problem.is_too_long:
        return ""
    html = ""
    for text, is_number in marked_parts(problem):
        if is_number:
            html += f"<mark>{escape(text)}</mark>"
        else:
            html += escape(text)
    return html


def _certainty(answer: dict[str, Any], language: str) -> str:
    words = page_words()[language]
    texts = []
    if "plausibility" in answer:
        texts.append(f"{words['plausibility']} {answer['plausibility']:.1%}")
    texts.append(f"{words['probability']} {answer['probability']:.1%}")
    for violation in answer["violations"]:
        texts.append(violation[language])
    return escape(" · ".join(texts))


def _label(token: str, numbers: list[str]) -> str:
    """Return the number of the text, the sign or the constant that a token of an expression stands for."""
    if token[0] == "N":
        return numbers[int(token[1:])]
    return SIGNS.get(token, token)


def tree(prefix: list[str], numbers: list[str], label: str) -> str:
    """Return an expression tree, given in prefix order with the numbers of the text, as SVG with a label."""
    tokens = iter(prefix)
    edges = []
    nodes = []
    num_leaves = 0
    deepest_y = 0.0
    longest_label = max(len(_label(token, numbers)) for token in prefix)
    leaf_width = max(LEAF, 18 + 10 * longest_label)

    def draw(depth: int) -> tuple[float, float]:
        """Draw the next subtree, and return the position of its root."""
        nonlocal num_leaves, deepest_y
        token = next(tokens)
        is_operator = token in "+-*/^"
        y = LEVEL * depth + LEVEL / 2
        deepest_y = max(deepest_y, y)
        if is_operator:
            left_x, left_y = draw(depth + 1)
            right_x, right_y = draw(depth + 1)
            x = (left_x + right_x) / 2
            edges.append(_edge(x, y, left_x, left_y))
            edges.append(_edge(x, y, right_x, right_y))
        else:
            x = (num_leaves + 0.5) * leaf_width
            num_leaves += 1
        nodes.append(_node(x, y, _label(token, numbers), is_operator))
        return x, y

    draw(0)
    width = num_leaves * leaf_width
    height = deepest_y + LEVEL / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" '
        f'aria-label="{escape(label)}">{"".join(edges)}{"".join(nodes)}</svg>'
    )


def _edge(parent_x: float, parent_y: float, child_x: float, child_y: float) -> str:
    return f'<line x1="{parent_x:g}" y1="{parent_y:g}" x2="{child_x:g}" y2="{child_y:g}" stroke="#98a2b3"/>'


def _node(x: float, y: float, label: str, is_operator: bool) -> str:
    """Return a rounded rectangle with a label, with the center at a position."""
    if is_operator:
        half_width = 16
        radius = 16
        fill = "#e7eefc"
    else:
        half_width = max(18, 8 + 5 * len(label))
        radius = 6
        fill = "#fff1c2"
    return (
        f'<rect x="{x - half_width:g}" y="{y - 16:g}" width="{2 * half_width}" height="32" rx="{radius}" '
        f'fill="{fill}" stroke="#98a2b3"/><text x="{x:g}" y="{y + 5:g}" text-anchor="middle" fill="#1c2330">'
        f"{escape(label)}</text>"
    )


def make_app(solver: RuntimeSolver) -> Any:
    """Return the page as `gradio.Blocks`."""
    import gradio as gr

    with gr.Blocks(title="Math word problems", analytics_enabled=False) as app:
        gr.HTML("<h1>Math word problems 数学应用题</h1>")
        text = gr.Textbox(lines=3, label="A problem, or one a line  一道题，或每行一道")
        language = gr.Radio(LANGUAGES, value=solver.reader.language, label="Language of the results  结果的语言")
        button = gr.Button("Solve  求解", variant="primary")
        answers = gr.HTML()
        gr.Examples([[example] for example in EXAMPLES[solver.reader.language]], text)

        def show_answers(text: str | None, language: str) -> str:
            return show(solver, text or "", language)

        gr.on([button.click, text.submit], show_answers, [text, language], answers, api_name="solve")
    return app


def main() -> None:
    import gradio as gr

    # The default theme loads fonts from other hosts.
    theme = gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"])
    make_app(find_solver()).launch(theme=theme)


if __name__ == "__main__":
    main()
