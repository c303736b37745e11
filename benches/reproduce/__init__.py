"""The tables, figures and statements of the papers, run and written as a page: make reproduce.

``items`` says what an item and a line of the page are, ``ldsm``, ``gamble``, ``active``,
``lomtree`` and ``recall_tree`` what the papers have, ``papers`` lists them. ``data`` reads the data
sets, ``runs`` runs the items, each by ``one``, and remembers; ``page`` writes.
"""
