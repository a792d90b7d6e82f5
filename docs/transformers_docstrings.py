"""Griffe extension that converts Transformers docstrings to Google style, which Griffe parses."""

import ast
import re
from functools import cache
from pathlib import Path

from griffe import Attribute, Docstring, ExprCall, Extension, Object


PAGES = Path(__file__).parent / "pages" / "api"
FIELD = r"\*{0,2}\w+(?: \((?:[^()]|\([^()]*\))*\))?"


class TransformersDocstrings(Extension):
    """Converts the fields of docstrings and links documented names."""

    def on_attribute_instance(self, *, attr: Attribute, **_) -> None:
        # A config's field `setting(default, "help")`: its help is its docstring.
        if isinstance(attr.value, ExprCall) and str(attr.value.function) in ("option", "setting"):
            attr.value, *others = attr.value.arguments
            texts = [str(each) for each in others if str(each)[:1] in "'\""]
            if texts and attr.docstring is None:
                attr.docstring = Docstring(ast.literal_eval(texts[0]).replace("%%", "%"), parent=attr)

    def on_object(self, *, obj: Object, **_) -> None:
        if obj.docstring is not None:
            text = re.sub(rf"^( +)({FIELD}(?:,\s+{FIELD})*):", _fields, obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"\[`~?([\w.]+)`\](?![(\[])", _link, text)


def _fields(found: re.Match) -> str:
    """Write "name (`type`, *optional*), other (`type`):" as a line each; the signature has the defaults."""
    text = re.sub(r"\[`~?([\w.]+)`\]|`", r"\1", found[2])
    fields = (
        re.sub(r", (\*optional\*|defaults to).*", ")", each, flags=re.DOTALL) for each in re.findall(FIELD, text)
    )
    return "\n".join(f"{found[1]}{each}:" for each in fields)


def _link(found: re.Match) -> str:
    documented = _documented(PAGES)
    known = [documented[part] for part in reversed(found[1].split(".")) if part in documented]
    return f"[`{found[1]}`][{known[0]}]" if known else f"`{found[1]}`"


@cache
def _documented(pages: Path) -> dict[str, str]:
    text = "".join(page.read_text("utf-8") for page in sorted(pages.glob("*.md")))
    return {path.rpartition(".")[2]: path for path in re.findall(r"^::: (\S+)", text, re.MULTILINE)}
