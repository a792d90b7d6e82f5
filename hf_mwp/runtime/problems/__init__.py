"""Math word problems: numbers, equations, tags and augmentation. Needs no torch; modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "answer": ("answer_half_unit", "answer_value"),
    ".augmentation.casual_wording": ("reword_casually",),
    ".augmentation.clock_times": ("write_clock_times",),
    ".augmentation.distractors": ("add_distractors",),
    ".augmentation.english_comparisons": ("compare_counts",),
    ".augmentation.english_prices": ("write_prices",),
    ".augmentation.english_properties": ("add_properties",),
    ".augmentation.number_writing": ("rewrite_numbers",),
    ".augmentation.remainders": ("write_remainders",),
    ".augmentation.reversed_problems": ("reverse_operations",),
    ".augmentation.step_questions": ("ask_steps",),
    ".augmentation.story_kinds": ("StoryKind", "load_story_kinds"),
    ".augmentation.story_problems": ("write_stories",),
    ".augmentation.unit_conversion": ("convert_units",),
    "keywords": ("find_keywords",),
    "math_word_problem": ("MathWordProblem", "ProblemError", "refusal"),
    ".numbers.masked_text": ("MaskedText", "find_numbers", "mask_numbers"),
    ".numbers.number_mention": ("NumberMention",),
    "problem_files": ("write_problems",),
    ".tagging": ("JiebaTagger", "LtpTagger", "PosTagger", "load_tagger"),
    ".tagging.pos_tagger": ("TaggedWord",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
