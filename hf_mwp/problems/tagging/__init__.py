"""Parts of speech, and where the words stand in the text."""
