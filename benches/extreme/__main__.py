"""Tables and plots of a results file, without measuring anything.

python -m extreme RESULTS [FOLDER [README]], with ``benches`` on the path; plots go to the folder,
the table of label sets into the README.
"""

import sys

from extreme import plots, summary, tables
from extreme.runs import Results

results = Results(sys.argv[1])
print(*tables.lines(results), sep="\n")
for folder in sys.argv[2:3]:
    plots.write(results, folder)
for readme in sys.argv[3:]:
    summary.write(results, readme)
