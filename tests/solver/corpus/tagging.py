"""A tagger of a few lines, for what does not depend on the tags."""

import hashlib
import time

from hf_mwp.runtime.problems import TaggedWord


class CharacterTagger:
    """Each character is a word: `m` for digits, `x` for what is neither digit nor letter, `n` else."""

    def __init__(self, name="characters", version="1", delay=0.0):
        self.name = name
        self.fingerprint = hashlib.sha256(version.encode()).hexdigest()[:16]
        self.delay = delay
        self.batches = []

    @property
    def count(self):
        """Texts tagged so far."""
        return sum(map(len, self.batches))

    def tag(self, texts):
        time.sleep(self.delay)
        self.batches.append(list(texts))
        return [
            [TaggedWord(c, "m" if c.isdigit() else "n" if c.isalpha() else "x", i, i + 1) for i, c in enumerate(text)]
            for text in texts
        ]


def make_texts(count):
    """Texts that all differ."""
    return [f"小明有{index}个苹果，😀\n一共？" for index in range(count)]
