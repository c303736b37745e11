"""Tables and plots of a results file, without measuring anything.

python -m extreme RESULTS [FOLDER], with ``benches`` on the path; plots go to the folder.
"""

import sys

from extreme import plots, tables
from extreme.runs import Results

results = Results(sys.argv[1])
print(*tables.lines(results), sep="\n")
for folder in sys.argv[2:3]:
    plots.write(results, folder)
