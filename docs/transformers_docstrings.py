"""Extension of Griffe for docstrings in the form of Transformers: rewritten into Google's, which Griffe reads."""

import ast
import re
from pathlib import Path

from griffe import Attribute, Docstring, ExprCall, Extension, Module


PAGES = Path(__file__).parent / "pages" / "api"
FIELD = r"(?:\*{0,2}\w+(?: \((?:[^()]|\([^()]*\))*\))?)"
FIELDS = re.compile(rf"^( +)({FIELD}(?:,\s+{FIELD})*):", re.MULTILINE)


class TransformersDocstrings(Extension):
    """Reads fields, and links the names of what the reference documents."""

    def on_package(self, *, pkg: Module, **_) -> None:
        text = "".join(page.read_text("utf-8") for page in sorted(PAGES.glob("*.md")))
        self.documented = {path.rpartition(".")[2]: path for path in re.findall(r"^::: (\S+)", text, re.MULTILINE)}
        self._walk(pkg)

    def _walk(self, each) -> None:
        if isinstance(each, Attribute):
            _read_option(each)
        if each.docstring is not None:
            each.docstring.value = self._google(each.docstring.value)
        for member in each.members.values():
            if not member.is_alias:
                self._walk(member)

    def _google(self, text: str) -> str:
        # name (`type`, *optional*, defaults to `x`), other (`type`): -> a line each; the signature has the defaults.
        text = FIELDS.sub(
            lambda found: "\n".join(f"{found[1]}{_field(each)}:" for each in re.findall(FIELD, found[2])), text
        )
        return re.sub(r"\[`(~?[\w.]+)`\](?![(\[])", self._link, text)

    def _link(self, found: re.Match) -> str:
        name = found[1].lstrip("~").split(".")
        for place in range(len(name), 0, -1):
            if path := self.documented.get(name[place - 1]):
                return f"[`{'.'.join(name)}`][{path}]"
        return f"`{'.'.join(name)}`"


def _field(field: str) -> str:
    name, _, kind = field.partition(" (")
    kind = re.split(r", \*optional\*|, defaults to", kind.removesuffix(")"))[0]
    kind = re.sub(r"\[`~?([\w.]+)`\]|`", r"\1", kind)
    return f"{name} ({kind})" if kind else name


def _read_option(field: Attribute) -> None:
    """Reads an option of a config, `setting(default, "help")`: its help is the docstring of the field."""
    if isinstance(field.value, ExprCall) and str(field.value.function) in ("option", "setting"):
        default, *others = field.value.arguments
        texts = [str(each) for each in others if str(each)[:1] in "'\""]
        if texts and field.docstring is None:
            field.docstring = Docstring(ast.literal_eval(texts[0]).replace("%%", "%"), parent=field)
        field.value = default
