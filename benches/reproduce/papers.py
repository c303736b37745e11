"""All items, paper by paper."""

from reproduce import active, gamble, ldsm, lomtree, recall_tree

ITEMS = (*ldsm.ITEMS, *gamble.ITEMS, *active.ITEMS, *lomtree.ITEMS, *recall_tree.ITEMS)
