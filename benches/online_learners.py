"""The online learners that benchmarks compare, by the names in figures."""

import xmtree

ONLINE_LEARNERS = {
    "OAA": xmtree.OAAClassifier,
    "LOMtree": xmtree.LOMTreeClassifier,
    "10 LOMtrees": lambda **more: xmtree.LOMTreeClassifier(n_estimators=10, **more),
    "Recall Tree": xmtree.RecallTreeClassifier,
    "filter tree": xmtree.FilterTreeClassifier,
    "random tree": xmtree.RandomTreeClassifier,
}
