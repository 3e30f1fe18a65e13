"""The site: static pages of the results, of every method and of every participation model. Imports no torch."""
