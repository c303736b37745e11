"""A model behind HTTP: the application of ``xmtree serve``."""
