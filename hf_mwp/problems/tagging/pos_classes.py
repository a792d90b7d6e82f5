"""The classes of parts of speech that matter most in math word problems, in the tag sets of the taggers."""

POS_CLASSES = ("noun", "quantity", "verb", "punctuation", "pronoun")
"""
The five classes that Ming et al. (AAAI 2025) single out: "nouns (including temporal nouns), quantity, verbs,
punctuation, and pronouns are important for understanding these problems". Nouns may be the entities of an operation,
quantities hold units, verbs may name the operation.
"""

TAG_SETS = {
    # The tag set of jieba's dictionary, a variant of ICTCLAS. Its `x` is whatever the dictionary has no tag for,
    # which in problem texts is punctuation.
    "jieba": {
        "noun": ("n", "ng", "nr", "nrfg", "nrt", "ns", "nt", "nz", "t", "tg"),
        "quantity": ("m", "mg", "mq", "q"),
        "verb": ("v", "vd", "vg", "vi", "vn", "vq"),
        "punctuation": ("w", "x"),
        "pronoun": ("r", "rg", "rr", "rz"),
    },
    # The 863 tag set, which LTP uses.
    "ltp": {
        "noun": ("n", "nd", "nh", "ni", "nl", "ns", "nt", "nz"),
        "quantity": ("m", "q"),
        "verb": ("v",),
        "punctuation": ("wp",),
        "pronoun": ("r",),
    },
}
"""Tags of each class, by the name of the tagger."""


def tag_classes(tagger: str) -> dict[str, str]:
    """
    The class of each tag that belongs to one, for a tagger's name, of which what follows a colon (`"ltp:folder"`) does
    not count; empty for a tagger whose tag set is not known.
    """
    classes = TAG_SETS.get(tagger.partition(":")[0], {})
    return {tag: name for name, tags in classes.items() for tag in tags}
