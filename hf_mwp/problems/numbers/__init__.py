"""The numbers of a text, however they are written."""
