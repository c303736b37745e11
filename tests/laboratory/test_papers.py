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


def toy(statements, name, title, data="", base=10.0, needs=()):
    """Return an item whose values are known."""

    def measure(settings, seed, rows, data=""):
        return {"error": settings["base"] + seed, "curve": [1.0 + seed, 2.0], "lead": 5.0 - seed}

    behind = statements.Claim("Section 5", "it is behind", lambda v: -v["lead"], cause="Why.")
    lines = (
        statements.AtMost("Table 1", "error %", "error", 12.0, "It is a toy."),
        statements.Line("Table 2", "error %, once more", "error", 11.0),
        statements.Line("Figure 3", "curve", "curve", "(plot)"),
        statements.Claim("Section 4", "it leads", "lead"),
        behind,
    )
    modes = {"paper's mode": {"base": base}, "default": {"base": 20.0}}
    return statements.Item(name, title, measure, modes, lines, data=data, needs=needs)


class Record:
    """The record of runs with three seeds."""

    def __init__(self, papers, items):
        from harness.record import summarized

        runs = [
            case.key()
            | {"source": "0123abc", "machine": "a machine", "date": "2026-01-01", "load": 1.0}
            | {"values": papers.measure(case)}
            for case in papers.cases()
            if case.task in items
        ]
        self.rows = list(summarized(runs, papers.summarize))

    def of(self):
        return self.rows


def page_of(papers, monkeypatch, items, measured):
    monkeypatch.setattr(papers, "PAPERS", {"Toys": items})
    monkeypatch.setattr(papers, "ITEMS", {item.name: item for item in items})
    return papers.page(Record(papers, measured)).splitlines()


def test_page(papers, statements, monkeypatch):
    items = [toy(statements, name, f"{name} title") for name in ("toy", "later")]
    items.append(toy(statements, "lost", "lost title", needs=("isolet",)))
    lines = page_of(papers, monkeypatch, items, ["toy"])
    assert "| statement | paper | paper's mode | default | verdict |" in lines
    assert "| Table 1: error % | 12 | 11.00 ±0.58 | 21.0 | reached |" in lines
    assert "| Table 2: error %, once more | 11 | 11.00 ±0.58 | 21.0 | agrees |" in lines
    assert "| Figure 3: curve | (plot) | 2.00 | 2.00 |  |" in lines
    assert "| Section 4: it leads | stated | 4.00 ±0.58 | 4.00 | holds |" in lines
    assert "| Section 5: it is behind | stated | -4.00 ±0.58 | -4.00 | does not hold |" in lines
    # The page gives causes of differences only.
    assert "- Why." in lines
    assert "It is a toy." not in "\n".join(lines)
    assert "Not run, because the data are missing: isolet." in lines
    assert "Not run yet: later." in lines
    assert "Seeds: 3; 0123abc, 2026-01-01." in lines


def test_items_of_a_section_share_a_table(papers, statements, monkeypatch):
    items = [
        toy(statements, name, "Both toys", name, base)
        for name, base in (("toy", 10.0), ("other", 30.0))
    ]
    lines = page_of(papers, monkeypatch, items, ["toy", "other"])
    assert lines.count("### Both toys") == 1
    assert "| Table 1: error %, toy | 12 | 11.00 ±0.58 | 21.0 | reached |" in lines
    assert "| other | 12 | 31.0 ±0.58 | 21.0 | missed by 19 |" in lines
    assert "- other: It is a toy." in lines
    # A statement has one row, and a cause of all data sets names none of them.
    assert "| Section 4: it leads | stated | 4.00 | 4.00 | holds |" in lines
    assert "- Why." in lines


def test_verdicts_of_several_data_sets(papers, statements):
    claim, found = statements.Claim("", "", "lead"), statements.Found.of
    margins = {"a": [1.0, 1.2], "b": [1.0], "c": [-1.0, -1.2], "d": [3.0]}
    entries = [(name, claim, found(values), None) for name, values in margins.items()]
    assert papers.verdicts(entries) == "holds on 3 of 4; does not hold: c"
    assert papers.verdicts(entries[1:3]) == "holds: b; does not hold: c"
    assert papers.verdicts(entries[:2]) == "holds"


@pytest.mark.parametrize(
    ("kind", "values", "verdict"),
    [
        ("AtMost", [13.0], "missed by 1"),
        ("AtMost", [12.0], "reached"),
        ("Line", [12.03], "agrees"),
        ("Line", [12.5], "+0.5"),
        ("Line", [11.0, 14.0], "agrees"),
        ("Line", [10.0, 10.2], "-1.9"),
        ("Claim", [1.0], "holds (one seed)"),
        ("Claim", [0.0], "no difference"),
        ("Claim", [-1.0], "does not hold"),
        ("Claim", [1.0, 1.2], "holds"),
        ("Claim", [1.0, -1.2], "undecided"),
        ("Claim", [-1.0, -1.2], "does not hold"),
    ],
)
def test_verdicts(statements, kind, values, verdict):
    line = getattr(statements, kind)("", "", "value", 12.0)
    found = line.verdict(statements.Found.of(values))
    assert found == verdict
    differs = verdict[0] in "+-" or "missed" in verdict or "not" in verdict
    assert differs == (found not in statements.SAME)


def test_items_have_names_of_their_own_and_settings(papers):
    assert len(papers.ITEMS) == sum(map(len, papers.PAPERS.values()))
    for item in papers.ITEMS.values():
        json.dumps(item.settings)
        assert item.seeds > 0
        assert len({line.key for line in item.lines}) == len(item.lines) > 0


def test_small_runs_have_all_lines(papers):
    (case,) = [
        replace(case, rows=40)
        for case in papers.cases(1)
        if (case.task, case.program) == ("gamble-spheres", "default")
    ]
    found = papers.measure(case)["rows"]
    assert len(found) == len(papers.ITEMS["gamble-spheres"].lines)
    assert all(np.isfinite(row["value"]) for row in found.values())


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
        (case,) = [case for case in papers.cases(1) if (case.task, case.program) == (name, setting)]
        found = json.loads(json.dumps(papers.measure(case)))["rows"]
        assert all(np.isfinite(row["value"]).all() for row in found.values())


def test_ldsm_first_column_is_the_papers(papers):
    """The first column has the arities of Table 6."""
    from papers.ldsm import TABLE, modes
    from xmtree import LdSMClassifier

    for name in TABLE:
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
