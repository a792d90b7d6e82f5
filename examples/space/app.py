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
from hf_mwp.commands.web_app.server import EXAMPLES, MAX_PROBLEMS, marked_parts, solve  # noqa: E402
from hf_mwp.runtime import RuntimeSolver, load_solver  # noqa: E402


SIGNS = {"*": "×", "/": "÷", "-": "−"}
LEVEL, LEAF = 52, 56  # height of a level and minimum width of a leaf, in pixels
STYLE = """
<style>
.mwp mark { background: #fff1c2; color: #1c2330; border-radius: 4px; padding: 0 3px; }
.mwp .value { font-size: 28px; font-weight: 650; }
.mwp .equation { font-family: monospace; overflow-wrap: anywhere; }
.mwp .error { color: #a3341f; }
.mwp svg { display: block; max-width: 100%; height: auto; margin: 8px auto; }
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


def show(solver: RuntimeSolver, text: str) -> str:
    """Return the answers to problems, one per line, as HTML, with the problems' text escaped."""
    if len(text.encode()) > MAX_BODY:
        return f'{STYLE}<div class="mwp"><p class="error">That is too much text.</p></div>'
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    blocks = [_problem(solver, line) for line in lines[:MAX_PROBLEMS]]
    if len(lines) > MAX_PROBLEMS:
        blocks.append(f"<p>{len(lines) - MAX_PROBLEMS} more problems were skipped. Use hf-mwp solve --file.</p>")
    return f'{STYLE}<div class="mwp">{"".join(blocks)}</div>'


def _problem(solver: RuntimeSolver, text: str) -> str:
    problem = solver.reader.problem(text)
    found = solve(solver, text)
    marked = (
        f"<mark>{escape(part)}</mark>" if is_number else escape(part)
        for part, is_number in ([] if problem.is_too_long else marked_parts(problem))
    )
    shown = [f"<p>{''.join(marked)}</p>"]
    shown += [f'<p class="error">{escape(found[name])}</p>' for name in ("error", "warning") if found.get(name)]
    best, *others = found["answers"] or [None]
    if best is not None:
        shown.append(f'<div class="value">{escape(best["value"])}</div>')
        shown.append(f'<div class="equation">{escape(best["equation"])}</div><div>{_certainty(best)}</div>')
        shown.append(tree(best["prefix"], best["numbers"]))
    if others:
        items = (
            f'<li><b>{escape(each["value"])}</b> <span class="equation">{escape(each["equation"])}</span> '
            f"{_certainty(each)}</li>"
            for each in others
        )
        shown.append(f"<ul>{''.join(items)}</ul>")
    return "".join(shown) + f"<p>{found['milliseconds']:.0f} ms</p>"


def _certainty(answer: dict[str, Any]) -> str:
    parts = [f"plausibility {answer['plausibility']:.1%}"] if "plausibility" in answer else []
    parts += [f"probability {answer['probability']:.1%}", *answer.get("violations", ())]
    return escape(" · ".join(parts))


def tree(prefix: list[str], numbers: list[str]) -> str:
    """Return an expression tree, given in prefix order with the numbers of the text, as SVG."""
    tokens = iter(prefix)
    drawn = []
    edges = []
    leaves = 0
    labels = [numbers[int(token[1:])] if token[0] == "N" else SIGNS.get(token, token) for token in prefix]
    width = max(LEAF, 18 + 10 * max(map(len, labels)))

    def read(depth: int) -> tuple[float, float]:
        nonlocal leaves
        token = next(tokens)
        y = LEVEL * depth + LEVEL / 2
        if token in "+-*/^":
            children = [read(depth + 1), read(depth + 1)]
            x = (children[0][0] + children[1][0]) / 2
            edges.extend((x, y, *child) for child in children)
        else:
            x = (leaves + 0.5) * width
            leaves = leaves + 1
        label = numbers[int(token[1:])] if token[0] == "N" else SIGNS.get(token, token)
        drawn.append((x, y, label, token in "+-*/^"))
        return x, y

    read(0)
    lines = (f'<line x1="{a:g}" y1="{b:g}" x2="{c:g}" y2="{d:g}" stroke="#98a2b3"/>' for a, b, c, d in edges)
    nodes = []
    for x, y, label, is_operator in drawn:
        half = 16 if is_operator else max(18, 8 + 5 * len(label))
        fill = "#e7eefc" if is_operator else "#fff1c2"
        nodes.append(
            f'<rect x="{x - half:g}" y="{y - 16:g}" width="{2 * half}" height="32" rx="{16 if is_operator else 6}" '
            f'fill="{fill}" stroke="#98a2b3"/><text x="{x:g}" y="{y + 5:g}" text-anchor="middle" fill="#1c2330">'
            f"{escape(label)}</text>"
        )
    across = leaves * width
    down = max(y for _, y, _, _ in drawn) + LEVEL / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across:g} {down:g}" width="{across:g}" role="img" '
        f'aria-label="{escape(" ".join(prefix))}">{"".join(lines)}{"".join(nodes)}</svg>'
    )


def make_app(solver: RuntimeSolver) -> Any:
    """Return the page as `gradio.Blocks`."""
    import gradio as gr

    with gr.Blocks(title="Math word problems", analytics_enabled=False) as app:
        gr.HTML("<h1>Math word problems 数学应用题</h1>")
        text = gr.Textbox(lines=3, label="A problem, or one a line  一道题，或每行一道")
        button = gr.Button("Solve  求解", variant="primary")
        answers = gr.HTML()
        gr.Examples([[each] for each in EXAMPLES[solver.reader.language]], text)
        gr.on([button.click, text.submit], lambda given: show(solver, given or ""), text, answers, api_name="solve")
    return app


def main() -> None:
    import gradio as gr

    # The default theme loads fonts from other hosts.
    theme = gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["monospace"])
    make_app(find_solver()).launch(theme=theme)


if __name__ == "__main__":
    main()
