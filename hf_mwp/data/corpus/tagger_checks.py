"""Whether texts are tagged as the model's tagging head expects."""

from __future__ import annotations

from typing import Any


def config_tagger(config: Any) -> str | None:
    """Name of the tagger whose labels a model has."""
    return getattr(config, "pos_tagger", None)


def check_tagger(config: Any, tagger: str | None) -> None:
    """Raises `ValueError` if the model's tagging head was made for the labels of another tagger."""
    ours = config_tagger(config)
    if ours is not None and tagger is not None and ours.partition(":")[0] != tagger.partition(":")[0]:
        raise ValueError(
            f"The model's tagging head has the labels of {ours}, but the texts are tagged by {tagger}: tag them with "
            f"{ours}, or give the model a new head (`new_pos_head`; `MwpStudentForPreTraining.from_encoder(model, "
            "pos_labels=...)`)."
        )
