import importlib
import importlib.util
import sys

import pytest

from hf_mwp.utils.import_hook import ImportHook


# `caller_x` imports `package_x` in each of its modules, and `caller_x.models` needs names of `caller_x.layers`.
FILES = {
    "package_x/__init__.py": "from . import part\n",
    "package_x/part.py": "",
    "caller_x/__init__.py": "",
    "caller_x/light.py": "",
    "caller_x/layers.py": "import package_x\nfrom .units import UNIT\nLAYER = UNIT\n",
    "caller_x/units.py": "import package_x\nUNIT = 1\n",
    "caller_x/models.py": "from .layers import LAYER\nMODEL = LAYER\n",
    "caller_x/damaged.py": "import package_x\nraise ValueError('damaged')\n",
    "caller_x/__main__.py": "import package_x\nprint(__name__)\n",
}


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Values of `MODEL` that the function of an installed hook has imported, one for each call."""
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    models = []

    def register():
        models.append(importlib.import_module("caller_x.models").MODEL)

    hook = ImportHook("package_x", "caller_x", register)
    hook.install()
    yield models
    if hook in sys.meta_path:
        sys.meta_path.remove(hook)
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("package_x", "caller_x"):
            del sys.modules[name]


def installed_hooks():
    return [finder for finder in sys.meta_path if isinstance(finder, ImportHook)]


def test_function_is_called_once_after_the_package_is_imported(calls):
    num_hooks = len(installed_hooks())
    importlib.import_module("caller_x.light")
    assert calls == []
    importlib.import_module("package_x.part")
    assert calls == [1]
    assert len(installed_hooks()) == num_hooks - 1
    importlib.reload(sys.modules["package_x"])
    importlib.import_module("caller_x.units")
    assert calls == [1]


@pytest.mark.parametrize("module", ["layers", "units", "models"])
def test_call_waits_until_no_module_of_the_caller_is_half_imported(calls, module):
    importlib.import_module(f"caller_x.{module}")
    assert calls == [1]


def test_function_is_called_at_once_if_the_package_is_imported_already(calls):
    importlib.import_module("package_x")
    hook = ImportHook("package_x", "caller_x", lambda: calls.append(2))
    hook.install()
    assert calls == [1, 2]
    assert hook not in sys.meta_path


def test_looking_for_the_package_does_not_use_up_the_hook(calls):
    assert importlib.util.find_spec("package_x") is not None
    assert importlib.util.find_spec("package_y") is None
    assert calls == []
    importlib.import_module("package_x")
    assert calls == [1]


def test_modules_keep_their_own_loaders(calls):
    for name in ("package_x", "caller_x.units"):
        module = importlib.import_module(name)
        assert type(module.__spec__.loader) is type(module.__loader__) is type(importlib.__loader__)


def test_call_follows_a_module_of_the_caller_that_fails(calls):
    with pytest.raises(ValueError, match="damaged"):
        importlib.import_module("caller_x.damaged")
    assert calls == [1]


def test_failed_import_of_the_package_is_no_import(calls, tmp_path):
    (tmp_path / "package_x" / "part.py").write_text("import package_y\n")
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError, match="package_y"):
        importlib.import_module("package_x")
    assert calls == []
    (tmp_path / "package_x" / "part.py").write_text("")
    importlib.invalidate_caches()
    importlib.import_module("package_x")
    assert calls == [1]


def test_error_of_the_function_is_an_error_of_the_import(calls, tmp_path):
    (tmp_path / "caller_x" / "units.py").write_text("")
    importlib.invalidate_caches()
    with pytest.raises(ImportError, match="UNIT"):
        importlib.import_module("package_x")


def test_python_m_reads_the_code_of_a_module(calls):
    spec = importlib.util.find_spec("caller_x.__main__")
    assert spec.loader.get_code("caller_x.__main__") is not None
