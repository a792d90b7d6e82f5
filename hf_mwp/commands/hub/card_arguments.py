"""Options of `hf-mwp card`."""

from dataclasses import dataclass

from hf_mwp.commands.building.model_sources import locate_model
from hf_mwp.utils.checks import check_options
from hf_mwp.utils.option import option
from hf_mwp.utils.yaml_values import parse_mapping


@dataclass
class CardArguments:
    """Options of `hf-mwp card`."""

    model: str | None = option(None, "Folder or Hub id of a trained model.", required=True, locate=locate_model)
    output_dir: str | None = option(None, "Folder for the published model.", required=True, affects_result=False)
    part: str = option("solver", "Part to write: the solver, or its encoder with code.", choices=("solver", "encoder"))
    model_id: str | None = option(None, "Model name in the code examples of the card; the output folder if not given.")
    stages: list[str] | None = option(None, "Folders of the runs that trained the model, in order.")
    evaluations: list[str] | None = option(None, "Output folders of `hf-mwp evaluate` for the model or its solver.")
    teacher_evaluations: list[str] | None = option(None, "Output folders of `hf-mwp evaluate` for the teacher.")
    reranker: str | None = option(None, "Folder or Hub id of the re-ranker; that in the solver's folder if not given.")
    summary: str = option("", "First paragraph of the card.")
    notes: str = option("", "Last section of the card, as Markdown text or the path of a Markdown file.")
    license: str | None = option(None, "Licence identifier of the weights.")
    metadata: dict | str | None = option(
        None, "Metadata, such as base_model, as a mapping in YAML or JSON, in addition to those of an earlier card."
    )
    overwrite: bool = option(False, "Replace the model that is in the folder.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        self.metadata = parse_mapping("metadata", self.metadata)
