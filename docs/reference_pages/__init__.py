"""Writes the reference pages of the site from the code. Each module has `pages()`: file name to text."""
