"""Very many labels: xmtree beside omikuji and PECOS; ``test_bench_extreme.py`` runs it."""
