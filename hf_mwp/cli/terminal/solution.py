"""Output of solved problems in the terminal."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from ...problems.control_characters import show_controls


def print_solution(console: Console, text: str, results: list[dict[str, Any]], tree: bool = True) -> None:
    """Print a problem and the results of the pipeline, best first: equation, value and tree."""
    from ...expressions import Expression, draw

    shown = text if len(text) <= 1000 else f"{text[:1000]}... ({len(text)} characters)"
    shown = shown.encode("utf-8", "backslashreplace").decode("utf-8")
    console.print(Text(shown, style="bold"))
    for result in results:
        if "warning" in result:
            console.print(Text(f"  {result['warning']}", style="yellow"))
        if "candidates" in result:
            console.print(Text(f"  {result['error']} It may be:", style="yellow"))
            for each in result["candidates"]:
                value = "no value" if each["value"] is None else each["value"]
                console.print(Text(f"    {each['equation']} = {value}   (probability {each['score']:.2f})"))
            continue
        if result["equation"] is None:
            console.print(Text(f"  no answer: {result['error']}", style="red"))
            continue
        if result["answer"] is None:
            console.print(Text(f"  {result['equation']}: {result['error']}", style="red"))
        else:
            value = result["value"]
            rounded = "" if "/" not in value else f" = {result['answer']:.10g}"
            line = Text(f"  {result['equation']} = ").append(f"{value}{rounded}", style="bold green")
            plausible = f", plausibility {result['plausibility']:.2f}" if "plausibility" in result else ""
            console.print(line.append(f"   (probability {result['score']:.2f}{plausible})", style="dim"))
        if result.get("violations"):
            console.print(Text(f"    against it: {', '.join(result['violations'])}", style="dim"))
        if rejected := result.get("instead_of"):
            reasons = f": {', '.join(rejected['violations'])}" if rejected["violations"] else ""
            text = f"  instead of {rejected['equation']} = {rejected['answer']:.10g}{reasons}"
            console.print(Text(text, style="dim"))
        if tree:
            drawn = draw(Expression.from_prefix(result["prefix"]).bind(result["numbers"]))
            console.print(Text("\n".join(f"    {row}" for row in drawn.splitlines())))
    console.print()


def json_line(record: dict[str, Any]) -> str:
    """Return a record as one line of JSON, with control characters and lone surrogates escaped."""
    # JSON itself escapes only the control characters below U+0020.
    line = show_controls(json.dumps(record, ensure_ascii=False), "\\u{:04x}")
    return line.encode("utf-8", "backslashreplace").decode("utf-8")
