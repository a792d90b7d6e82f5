"""A tagger of a few lines, for tests that do not depend on the tags, and the files that a corpus is stored in."""

import hashlib
import time
from pathlib import Path

from hf_mwp.runtime.problems import TaggedWord


class CharacterTagger:
    """Tags each character as a word: `m` for digits, `n` for letters, and `x` for others."""

    name = "characters"

    def __init__(self, version="1", delay=0.0):
        self.fingerprint = hashlib.sha256(version.encode()).hexdigest()[:16]
        self.delay = delay
        self.batches = []

    @property
    def num_tagged(self):
        return sum(map(len, self.batches))

    def tag(self, texts):
        time.sleep(self.delay)
        self.batches.append(list(texts))
        return [self._words(text) for text in texts]

    @staticmethod
    def _words(text):
        words = []
        for index, character in enumerate(text):
            tag = "x"
            if character.isdigit():
                tag = "m"
            elif character.isalpha():
                tag = "n"
            words.append(TaggedWord(character, tag, index, index + 1))
        return words


def make_texts(count):
    """Texts that all differ."""
    return [f"小明有{index}个苹果，😀\n一共？" for index in range(count)]


def stored_files(folder):
    """The files of rows below a folder, and any file that should not be there."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return sorted(path for path in paths if path.name not in ("manifest.json", "lock"))
