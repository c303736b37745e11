"""The runner and the page of ``make reproduce``, on items that cost nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture
def package(monkeypatch):
    """The package of the benches, with clean sources of a fixed commit."""
    monkeypatch.syspath_prepend(BENCHES)
    from reproduce import items, page, runs

    monkeypatch.setattr(runs, "source", lambda package: "0123abc")

    class Package:
        Item, Line, AtMost, Claim = items.Item, items.Line, items.AtMost, items.Claim
        Found, Results, run_all, wanted = items.Found, runs.Results, runs.run_all, runs.wanted
        written = staticmethod(page.written)

    return Package


def measure(settings, seed, rows):
    return {"error": settings["base"] + seed, "curve": [1.0 + seed, 2.0], "lead": 5.0 - seed}


def make(package, name="toy", needs=(), **changed):
    lines = (
        package.AtMost("Table 1", "error %", "error", 12.0, "It is a toy."),
        package.Line("Table 2", "error %, once more", "error", 11.0),
        package.Line("Table 2", "a detail", "error", 11.0, main=False),
        package.Line("Figure 3", "curve", "curve", "(plot)"),
        package.Claim("Section 4", "it leads", "lead"),
        package.Claim("Section 5", "it is behind", lambda values: -values["lead"], cause="Why."),
    )
    modes = {"paper's mode": {"base": 10.0}, "default": {"base": 20.0}}
    fields = {"settings": modes, "seeds": 3} | changed
    return package.Item(name, "Toys", f"{name} title", needs, measure, lines=lines, **fields)


def executed(package, items, results, **options):
    """Which runs were measured, and which failed."""
    ran = []

    def here(run):
        ran.append(str(run))
        if options.get("fails") == str(run):
            raise RuntimeError("out of memory")
        if options.get("stops_at") == len(ran):
            raise KeyboardInterrupt
        return {"values": measure(run.item.settings[run.setting], run.seed, None), "seconds": 1.0}

    failed = package.run_all(
        package.wanted(items), results, jobs=1, measure=here, say=lambda line: None
    )
    return ran, failed


def test_what_was_run_is_not_run_again(package, tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    item = make(package)
    with pytest.raises(KeyboardInterrupt):
        executed(package, [item], package.Results(path), stops_at=4)
    kept = len(package.Results(path).records)
    assert 0 < kept < 6
    ran, _ = executed(package, [item], package.Results(path))
    assert len(ran) == 6 - kept
    assert executed(package, [item], package.Results(path)) == ([], {})
    # Other settings of one column, another seed: only these are new.
    other = make(package, settings={"paper's mode": {"base": 10.0}, "default": {"base": 1.0}})
    assert executed(package, [other], package.Results(path))[0] == [
        f"toy, default, seed {seed}" for seed in range(3)
    ]
    from reproduce import runs

    monkeypatch.setattr(runs, "source", lambda package: "fedcba9")
    assert len(executed(package, [item], package.Results(path))[0]) == 6
    # Sources that are not committed are measured each time.
    monkeypatch.setattr(runs, "source", lambda package: "fedcba9-dirty")
    for _ in range(2):
        assert len(executed(package, [item], package.Results(path))[0]) == 6


def test_a_torn_line_is_dropped(package, tmp_path):
    path = tmp_path / "results.jsonl"
    item = make(package)
    executed(package, [item], package.Results(path))
    text = path.read_text()
    path.write_text(text[:-20])
    ran, _ = executed(package, [item], package.Results(path))
    assert len(ran) == 1
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 6


def test_page(package, tmp_path):
    results = package.Results(tmp_path / "results.jsonl")
    item = make(package)
    lacking, later = make(package, "lost", ("isolet",)), make(package, "later")
    broken = make(package, "broken")
    executed(package, [item], results)
    _, failed = executed(package, [broken], results, fails="broken, paper's mode, seed 0")
    assert failed == {"broken, paper's mode, seed 0": "out of memory"}
    results.records = [record for record in results.records if record["item"] != "broken"]
    text = package.written([item, later, lacking, broken], results, failed=failed, absent=list)
    lines = text.splitlines()
    assert "| statement | paper | paper's mode | default | verdict |" in lines
    assert "| Table 1: error % | 12 | 11.00 ±0.58 | 21.0 | reached |" in lines
    assert "| Table 2: error %, once more | 11 | 11.00 ±0.58 | 21.0 | agrees |" in lines
    assert "| Figure 3: curve | (plot) | 2.00 | 2.00 |  |" in lines
    assert "| Section 4: it leads | stated | 4.00 ±0.58 | 4.00 | holds |" in lines
    assert "| Section 5: it is behind | stated | -4.00 ±0.58 | -4.00 | does not hold |" in lines
    # Only differences are explained.
    assert "- Why." in lines
    assert "It is a toy." not in text
    assert "a detail" not in text
    assert "Not run, because the data are not here: isolet." in text
    assert "Not run yet: later title." in text
    assert "Failed: broken title." in text
    assert "Seeds: 3; 0123abc" in text


def test_items_of_a_section_share_a_table(package, tmp_path):
    results = package.Results(tmp_path / "results.jsonl")
    modes = [{"paper's mode": {"base": base}} for base in (10.0, 30.0)]
    items = [
        make(package, name, section="Both toys", data=name, settings=settings)
        for name, settings in zip(("toy", "other"), modes, strict=True)
    ]
    executed(package, items, results)
    lines = package.written(items, results, absent=list).splitlines()
    assert lines.count("### Both toys") == 1
    assert "| Table 1: error %, toy | 12 | 11.00 ±0.58 |  | reached |" in lines
    assert "| other | 12 | 31.0 ±0.58 |  | missed by 19 |" in lines
    assert "- other: It is a toy." in lines
    # A statement has one row, and a cause of all of them names none.
    assert "| Section 4: it leads | stated | 4.00 |  | holds |" in lines
    assert "- Why." in lines


def test_verdicts_of_several_data_sets(package):
    from reproduce.page import verdicts

    claim = package.Claim("", "", "lead")
    margins = {"a": [1.0, 1.2], "b": [1.0], "c": [-1.0, -1.2], "d": [3.0]}
    entries = [(name, claim, package.Found.of(values), None) for name, values in margins.items()]
    assert verdicts(entries) == "holds on 3 of 4; does not hold: c"
    assert verdicts(entries[1:3]) == "holds: b; does not hold: c"
    assert verdicts(entries[:2]) == "holds"


def test_newest_sources_only(package, tmp_path, monkeypatch):
    results = package.Results(tmp_path / "results.jsonl")
    item = make(package)
    executed(package, [item], results)
    from reproduce import runs

    monkeypatch.setattr(runs, "source", lambda package: "fedcba9")
    fewer = make(package, seeds=1)
    executed(package, [fewer], results)
    found = results.newest(item)
    assert {len(records) for records in found.values()} == {1}
    assert {record["source"] for of in found.values() for record in of} == {"fedcba9"}
    assert results.newest(item, rows=10) == {}


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([13.0], "missed by 1"), ([12.0], "reached"), ([11.0, 11.5], "reached")],
)
def test_what_is_to_be_reached(package, values, verdict):
    line = package.AtMost("", "", "error", 12.0)
    assert line.verdict(package.Found.of(values)).text == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([12.03], "agrees"), ([12.5], "+0.5"), ([11.0, 14.0], "agrees"), ([10.0, 10.2], "-1.9")],
)
def test_differences(package, values, verdict):
    found = package.Line("", "", "error", 12.0).verdict(package.Found.of(values))
    assert (found.text, found.differs) == (verdict, verdict != "agrees")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0], "holds (one seed)"),
        ([0.0], "no difference"),
        ([-1.0], "does not hold"),
        ([1.0, 1.2], "holds"),
        ([1.0, -1.2], "undecided"),
        ([-1.0, -1.2], "does not hold"),
    ],
)
def test_claims(package, values, verdict):
    found = package.Claim("", "", "lead").verdict(package.Found.of(values))
    assert (found.text, found.differs) == (verdict, verdict == "does not hold")


def test_items_have_names_of_their_own_and_settings(package):
    from reproduce.papers import ITEMS

    assert len({item.name for item in ITEMS}) == len(ITEMS)
    for item in ITEMS:
        json.dumps(item.settings)
        assert item.lines
        assert item.seeds > 0
        assert item.seconds > 0


def test_a_run_in_a_process_of_its_own(package):
    from reproduce import runs
    from reproduce.papers import ITEMS

    item = next(item for item in ITEMS if item.name == "gamble-spheres")
    found = runs.measured(runs.Run(item, "default", 0, rows=40))
    assert len(found["values"]["test 5"]) == 7
    assert found["seconds"] > 0
    with pytest.raises(RuntimeError, match="no such setting"):
        runs.measured(runs.Run(item, "no such setting", 0))


@pytest.fixture
def label_sets(package, monkeypatch):
    """Few rows with label sets in the place of every data set."""
    from ldsm_tasks import Task
    from reproduce import data

    random = np.random.default_rng(0)
    y = sp.csr_matrix(random.random((160, 12)) < 0.2, dtype=np.float32)
    X = y @ sp.csr_matrix(random.random((12, 9)) < 0.3, dtype=np.float32)
    task = Task("toy", X[:120], y[:120], X[120:], y[120:])
    monkeypatch.setattr(data, "label_sets", lambda name, rows: task)
    return task


@pytest.mark.filterwarnings("ignore:.*trees collapsed")
@pytest.mark.parametrize(
    "name", ["ldsm-delicious", "ldsm-nodes-bibtex", "ldsm-epochs-bibtex", "ldsm-objective"]
)
def test_ldsm_measures_what_its_lines_tell(package, label_sets, name):
    from reproduce.ldsm import ITEMS

    item = next(item for item in ITEMS if item.name == name)
    for settings in item.settings.values():
        values = json.loads(json.dumps(item.measure(settings, 0, None)))
        for line in item.lines:
            assert np.all(np.isfinite(package.Found.of([line.of(values)]).mean))


def test_ldsm_first_column_is_the_papers(package):
    """The arities of Table 6."""
    from reproduce.ldsm import TABLE, modes
    from xmtree import LdSMClassifier

    for name in TABLE:
        first, second, default = modes(name).values()
        binary = name in {"amazoncat-13k", "delicious-200k", "amazon-670k"}
        assert (first["arity"], second["arity"]) == ((2, 4) if binary else (4, 2))
        assert first["n_estimators"] == 50
        assert default == {}
        LdSMClassifier(**first)


def test_propensities_of_the_evaluated_part(package, label_sets):
    """The number of evaluated rows in the place of that of training rows, by the definition."""
    from reproduce.ldsm import of_rows
    from xmtree.metrics import propensities

    counts = np.asarray(label_sets.y.sum(axis=0)).ravel()
    a, b = 0.55, 1.5
    c = (np.log(label_sets.y_test.shape[0]) - 1) * (b + 1) ** a
    wanted = 1 / (1 + c * (counts + b) ** -a)
    usual = propensities(label_sets.y)
    assert np.allclose(of_rows(usual, label_sets), wanted)
    assert not np.allclose(usual, wanted)
