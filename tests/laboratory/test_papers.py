"""The statements of the papers: verdicts, the page, and measures of small problems."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture
def papers(monkeypatch):
    monkeypatch.syspath_prepend(BENCHES)
    from subjects import papers

    return papers


@pytest.fixture
def statements(papers):
    from papers import statements

    return statements


SAME, BETTER, WEAKER, NOT, OTHER, LATER = VERDICTS = (
    *("reproduced", "better than stated", "weaker", "not reproduced"),
    *("cannot be tested here", "not run yet"),
)


def test_intervals_are_students(statements):
    """The half width of three seeds is t = 4.303 standard errors, not two."""
    found = statements.Found.of([1.0, 2.0, 3.0])
    assert (found.center, found.reached) == (2.0, 3)
    assert found.half == pytest.approx(4.303 / np.sqrt(3), rel=1e-3)
    assert statements.Found.of([1.0, 2.0]).half == pytest.approx(12.706 * 0.5, rel=1e-3)
    assert statements.Found.of([5.0]).half is None
    assert str(found) == "2.00±2.48"


@pytest.mark.parametrize(
    ("line", "values", "verdict"),
    [
        # A percentage has a tolerance of 0.5 points. Less is better.
        ({"paper": 10}, [10.5], SAME),
        ({"paper": 10}, [9.5], SAME),
        ({"paper": 10}, [9.0], BETTER),
        ({"paper": 10}, [8.0, 10.0], SAME),
        ({"paper": 10}, [11.4], WEAKER),
        ({"paper": 10}, [11.6], NOT),
        ({"paper": 10}, [11.0, 13.0], WEAKER),
        ({"paper": 10}, [11.9, 12.1, 12.0], NOT),
        ({"paper": 10, "more": True}, [9.0], WEAKER),
        ({"paper": 10, "more": True}, [12.0], BETTER),
        # Shares have one of 10 %, times one of a factor of 2.
        ({"paper": 100, "unit": "share"}, [110], SAME),
        ({"paper": 100, "unit": "share"}, [111], WEAKER),
        ({"paper": 100, "unit": "share"}, [131], NOT),
        ({"paper": 10, "unit": "time"}, [20], SAME),
        ({"paper": 10, "unit": "time"}, [79], WEAKER),
        ({"paper": 10, "unit": "time"}, [81], NOT),
        ({"paper": 10, "unit": "time"}, [4], BETTER),
        # Relations: the interval decides.
        ({"paper": 0, "relation": ">"}, [1.0, 1.1, 1.2], SAME),
        ({"paper": 0, "relation": ">"}, [1.0, 3.0], WEAKER),
        ({"paper": 0, "relation": ">"}, [1.0], WEAKER),
        ({"paper": 0, "relation": ">"}, [0.0, 0.0], NOT),
        ({"paper": 0, "relation": ">"}, [-1.0, 0.9], NOT),
        ({"paper": 2, "relation": "<"}, [1.0, 1.0], SAME),
        ({"paper": 2, "relation": "<"}, [2.0, 2.0], NOT),
        # Seeds that never reach a target count as infinite.
        ({"paper": 100, "unit": "share"}, [90, 95, np.inf], SAME),
        ({"paper": 100, "unit": "share"}, [90, np.inf, np.inf], NOT),
        ({"paper": 0, "relation": ">"}, [np.inf, np.inf], WEAKER),
        # No value of the paper on these data, no value at all, and no run.
        ({"paper": "78 (LTCB)"}, [86.0], OTHER),
        ({}, [86.0], ""),
        ({"paper": 10}, [], LATER),
    ],
)
def test_verdicts(statements, line, values, verdict):
    line = statements.Line("", "", "value", **line)
    assert line.verdict(line.found([{"value": value} for value in values])) == verdict


def test_seeds_that_never_reach_a_target_are_not_averaged(statements):
    found = statements.Found.of([290, np.inf, 400])
    assert (found.center, found.half) == (400, None)
    assert str(found) == "400 (2 of 3 seeds)"
    assert str(statements.Found.of([290, np.inf, np.inf])) == "never (1 of 3 seeds)"


def test_values_are_read_by_name_point_difference_and_ratio(statements):
    run = {"a": 6.0, "b": 2.0, "1.5": 7.0, "curve": [1.0, 4.0]}
    for fields, value in (
        ({"value": "a", "minus": "b"}, 4.0),
        ({"value": "a", "over": "b"}, 3.0),
        ({"value": "curve.-1", "minus": "curve.0"}, 3.0),
        ({"value": "1.5"}, 7.0),
    ):
        assert statements.Line("", "", **fields).of(run) == value


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ([SAME, BETTER], SAME),
        ([BETTER, BETTER], BETTER),
        ([SAME, WEAKER, OTHER], WEAKER),
        ([SAME, NOT], WEAKER),
        ([SAME, NOT, NOT], NOT),
        ([OTHER, LATER], LATER),
        ([OTHER, OTHER], OTHER),
    ],
)
def test_verdicts_of_claims(statements, verdicts, verdict):
    assert statements.overall(verdicts) == verdict


@pytest.fixture
def toys(papers, statements, monkeypatch):
    """Replace the papers by one with two data sets, of which one was not measured."""

    def measure(settings, seed, rows, data):
        return {"error": settings["base"] + seed, "rows": [30, np.inf, np.inf][seed]}

    modes = {"paper's mode": {"base": 10.0}, "default": {"base": 20.0}}
    items = [statements.Item(f"toy-{n}", measure, modes, 3, n) for n in ("a", "isolet")]
    lines = [
        {"what": "error", "paper": {"a": 9.0, "isolet": 5.0}, "cause": "Why. At length."},
        {"what": "rows", "paper": {"a": 40}, "unit": "share", "claim": "few", "cause": "Rows."},
    ]
    where = {"items": "toy-.*", "where": "Table 1", "lines": lines}
    about = {"title": "Toys (2026)", "about": "About.", "untested": {LATER: [["S", "x", "y", "z"]]}}
    about["section"] = [where | {"title": "Grid", "grid": True}, where | {"title": "Lines"}]
    about["claims"] = [["few", "Few rows", "40"], ["z", "Not yet", "1"]]
    monkeypatch.setattr(papers, "PAPERS", {"toys": about})
    monkeypatch.setattr(papers, "ITEMS", {item.name: item for item in items})


def recorded(papers, tmp_path):
    """Return the record of a run of the first data set, written and read again."""
    from harness.record import Record, summarized

    runs = [
        case.key()
        | {"source": "0123abc", "machine": "a machine", "date": "2026-01-01", "load": None}
        | {"values": json.loads(json.dumps(papers.measure(case)))}
        for case in papers.cases()
        if case.task == "toy-a"
    ]
    record = Record("papers", "Toys", tmp_path)
    record.update(summarized(runs, papers.summarize))
    record.write()
    return Record("papers", "Toys", tmp_path)


def test_pages(papers, toys, tmp_path):
    record = recorded(papers, tmp_path)
    assert "toy-a,paper's mode | rows,a,3,30,inf,inf" in record.path.read_text()
    texts = dict(papers.pages(record))
    assert list(texts) == ["docs/reproduction.md", "docs/reproduction/toys.md"]
    first, page = (text.splitlines() for text in texts.values())
    assert "||error|rows (40)|" in page
    assert "|a|9\\|11.00±2.48 ~|never (1 of 3 seeds) ✗|" in page
    assert "|default|21.0|never|" in page
    assert "|isolet|5 ?||" in page
    assert "|Table 1: error|a|9|11.00±2.48|21.0|weaker|" in page
    assert "||isolet|5|||cannot be tested here|" in page
    assert page.count("- a: Why. At length.") == page.count("- a: Rows.") == 2
    assert "3 seeds; 0123abc; 2026-01-01." in page
    assert "|Toys|0|0|2|2|2|1|" in first
    assert "|claims|0|0|0|1|0|1|" in first
    assert "|Few rows|40|never|[not reproduced](reproduction/toys.md#grid)|Rows.|" in first
    assert "- [Toys](reproduction/toys.md): Table 1." in first
    assert "- Toys, S: x. y" in first


def test_lines_belong_to_items_and_claims(papers):
    """Each claim has lines or an untested entry, and each line an item."""
    empty = papers.Values(Record([]))
    for about in papers.PAPERS.values():
        used = [each[3] for body in about["untested"].values() for each in body]
        for section in about["section"]:
            found = list(papers.entries(section, empty))
            assert found, section["title"]
            used += [entry.line.claim for entry in found]
        assert set(used) - {""} == {key for key, *_ in about["claims"]}
        assert set(about["untested"]) <= {OTHER, LATER}


def test_few_failures_have_no_tested_cause(papers):
    from harness.record import Record

    values = papers.Values(Record("papers"))
    sections = [section for about in papers.PAPERS.values() for section in about["section"]]
    found = [entry for section in sections for entry in papers.entries(section, values)]
    failed = (entry for entry in found if entry.verdict == NOT)
    unknown = [e for e in failed if e.cause == papers.NO_CAUSE or "Not tested" in e.cause]
    assert len(unknown) <= 6


class Record:
    def __init__(self, rows):
        self.rows = rows

    def of(self):
        return self.rows


def test_items_have_names_of_their_own_and_settings(papers):
    assert len(papers.ITEMS) == sum(len(module.ITEMS) for module in papers.MODULES.values())
    for item in papers.ITEMS.values():
        json.dumps(item.settings)
        assert item.seeds > 0


def lines_of(papers, name):
    """Return the values of an item that its lines read."""
    values = papers.Values(Record([]))
    sections = [section for about in papers.PAPERS.values() for section in about["section"]]
    found = [entry for section in sections for entry in papers.entries(section, values)]
    return [entry.line for entry in found if entry.item.name == name]


def measured(papers, name, setting, rows=None):
    (case,) = [case for case in papers.cases(1) if (case.task, case.program) == (name, setting)]
    found = json.loads(json.dumps(papers.measure(replace(case, rows=rows))))["rows"]
    return {key.removeprefix(f"{setting} | "): row["value"] for key, row in found.items()}


@pytest.mark.parametrize(
    "name", ["gamble-spheres", "gamble-margins", "lomtree-line", "recall-touched-letter"]
)
def test_small_runs_have_the_values_of_their_lines(papers, name):
    setting = next(iter(papers.ITEMS[name].settings))
    values = measured(papers, name, setting, rows=40)
    assert all(np.isfinite(line.of(values)) for line in lines_of(papers, name))


@pytest.fixture
def label_sets(papers, monkeypatch):
    """Replace every data set by a few rows with label sets."""
    from harness import data

    random = np.random.default_rng(0)
    y = sp.csr_matrix(random.random((160, 12)) < 0.2, dtype=np.float32)
    X = y @ sp.csr_matrix(random.random((12, 9)) < 0.3, dtype=np.float32)
    task = data.Task(X[:120], y[:120], X[120:], y[120:])
    monkeypatch.setattr(data, "load", lambda name, rows: task)
    return task


@pytest.mark.filterwarnings("ignore:.*trees collapsed")
@pytest.mark.parametrize(
    "name", ["ldsm-delicious", "ldsm-nodes-bibtex", "ldsm-epochs-bibtex", "ldsm-objective"]
)
def test_ldsm_measures_the_values_of_its_lines(papers, label_sets, name):
    for setting in papers.ITEMS[name].settings:
        values = measured(papers, name, setting)
        lines = list(lines_of(papers, name))
        if setting == "default":
            # The default has no curve over its trees.
            lines = [line for line in lines if line.value in values]
        assert lines
        assert all(np.isfinite(line.of(values)) for line in lines)


def test_ldsm_first_column_is_the_papers(papers):
    """The first column has the arities of Table 6."""
    from papers.ldsm import SETS, modes
    from xmtree import LdSMClassifier

    for name in SETS:
        first, second, default = modes(name).values()
        binary = name in {"amazoncat-13k", "delicious-200k", "amazon-670k"}
        assert (first["arity"], second["arity"]) == ((2, 4) if binary else (4, 2))
        assert first["n_estimators"] == 50
        assert default == {}
        LdSMClassifier(**first)


def test_propensities_of_the_evaluated_part(papers, label_sets):
    """The result equals the definition with the number of evaluated rows."""
    from papers.ldsm import of_test_part
    from xmtree.metrics import propensities

    counts = np.asarray(label_sets.y.sum(axis=0)).ravel()
    a, b = 0.55, 1.5
    c = (np.log(label_sets.y_test.shape[0]) - 1) * (b + 1) ** a
    wanted = 1 / (1 + c * (counts + b) ** -a)
    usual = propensities(label_sets.y)
    assert np.allclose(of_test_part(usual, label_sets), wanted)
    assert not np.allclose(usual, wanted)
