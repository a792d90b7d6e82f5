"""Rows and files on disk: written whole, locked, resumed, checked, mapped into memory."""
