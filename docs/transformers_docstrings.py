"""Griffe extension that converts Transformers docstrings to Google style, which Griffe parses."""

import ast
import re
from pathlib import Path

from griffe import Docstring, Extension


PAGES = sorted((Path(__file__).parent / "pages" / "api").glob("*.md"))
DOCUMENTED = [path for page in PAGES for path in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)]
RESULT = re.compile(r"(?m)^((?:Returns|Yields):\n +)([^:\n]*`[^:\n]*):(?= )")
FIELD = r"\*{0,2}\w+(?: \((?:[^()]|\([^()]*\))*\))?"


class TransformersDocstrings(Extension):
    """Converts the fields of docstrings, links documented names and shows the help of options."""

    def on_attribute_instance(self, *, attr, **_) -> None:
        if str(getattr(attr.value, "function", "")) in ("option", "setting"):
            attr.value, *others = attr.value.arguments  # `option(default, "help")`
            texts = [str(each) for each in others if str(each)[:1] in "'\""]
            if texts and attr.docstring is None:
                attr.docstring = Docstring(ast.literal_eval(texts[0]).replace("%%", "%"), parent=attr)

    def on_object(self, *, obj, **_) -> None:
        if obj.docstring:
            text = RESULT.sub(lambda found: found[1] + _plain(found[2]) + ":", obj.docstring.value)
            text = re.sub(rf"(?m)^( +)({FIELD}(?:,\s+{FIELD})*):", _fields, text)
            obj.docstring.value = re.sub(r"\[`~?([\w.]+)`\](?![(\[])", lambda found: _link(found[1], obj.path), text)


def _fields(found: re.Match) -> str:
    """Write "name (`type`, *optional*), other (`type`):" as a line each; the signature has the defaults."""
    fields = re.findall(FIELD, _plain(found[2]))
    return "\n".join(found[1] + re.sub(r"(?s), (\*optional\*|defaults to).*", ")", each) + ":" for each in fields)


def _plain(text: str) -> str:
    """Return a type without backticks and brackets of links."""
    return re.sub(r"\[`~?([\w.]+)`\]|`", r"\1", text)


def _link(name: str, place: str) -> str:
    """Link a name to the documented object of that name which is nearest to the docstring's object."""
    near = {*name.split("."), *place.split(".")}
    known = [path for path in DOCUMENTED if path.rpartition(".")[2] in name.split(".")]
    return f"[`{name}`][{max(known, key=lambda path: len(near & {*path.split('.')}))}]" if known else f"`{name}`"
