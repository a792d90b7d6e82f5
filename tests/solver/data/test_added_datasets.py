import json

import pytest

from hf_mwp.solver.data import LOADERS, MwpLoader, add_dataset, load_mwp_dataset


class ShopLoader(MwpLoader):
    """Problems about prices."""

    name = "shop"
    language = "en"
    text_fields = ("story",)
    fields = {"equation": "formula", "answer": "result", "id": "number"}
    origin = "Write them yourself."


@pytest.fixture
def added_datasets():
    """Removes the dataset that a test adds."""
    yield
    LOADERS.pop("shop", None)


def test_added_dataset_is_found_by_name(added_datasets, tmp_path):
    add_dataset(ShopLoader)
    add_dataset(ShopLoader)
    (tmp_path / "shop").mkdir()
    row = {"story": "A pen costs 3 dollars. What do 5 pens cost?", "formula": "x=3*5", "result": 15, "number": 1}
    (tmp_path / "shop" / "train.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    assert load_mwp_dataset("shop", tmp_path)["train"][0]["text"] == row["story"]


def test_name_of_another_dataset_is_refused():
    class OtherLoader(ShopLoader):
        name = "math23k"

    with pytest.raises(ValueError, match="'math23k' already has the loader Math23kLoader"):
        add_dataset(OtherLoader)


def test_argument_must_be_a_loader_class():
    with pytest.raises(ValueError, match="Expected a class derived from `MwpLoader`"):
        add_dataset(dict)
    with pytest.raises(TypeError, match="`loader` must be a class"):
        add_dataset(ShopLoader())
