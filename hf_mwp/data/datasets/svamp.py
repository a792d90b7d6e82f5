"""SVAMP: 1,000 English problems that vary those of ASDiv-A (Patel et al., NAACL 2021)."""

from .mwp_loader import MwpLoader


class SvampLoader(MwpLoader):
    """
    File: `SVAMP.json`, as published: an array of `ID`, `Body`, `Question`, `Equation` (`"( 8.0 - 3.0 )"`), `Answer`
    and `Type`. A test set alone; the papers train on MAWPS and ASDiv-A.
    """

    name = "svamp"
    language = "en"
    text_fields = ("Body", "Question")
    fields = {"equation": "Equation", "answer": "Answer", "id": "ID"}
    split_schemes = {"public": "all 1,000 problems are test problems"}
    files = {"test": ("SVAMP.json",)}
    folders = ("svamp",)
    origin = "SVAMP.json is at https://github.com/arkilpatel/SVAMP."
