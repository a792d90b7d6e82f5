"""Part-of-speech taggers, which also return the positions of words in the text."""
