"""The table of the demo."""

import pytest
import xmtree
from xmtree import demo
from xmtree.cli import main

LEARNERS = {contender.name: contender for contender in demo.CONTENDERS}


def test_every_learner_is_printed(capsys):
    assert main(["demo", "--rows", "200"]) == 0
    out = capsys.readouterr().out
    rows = [
        line for line in out.splitlines() if line.startswith(("naics ", "letter ", "onet-titles "))
    ]
    assert len(rows) == 7 + 9 + 2
    for name in LEARNERS:
        assert any(f" {name} " in row for row in rows)


def test_boosting_competes_only_on_tables():
    competing = {
        (data.name, contender.name)
        for data in demo.DATA_SETS
        for contender in demo.CONTENDERS
        if not contender.text and contender.competes_on(data)
    }
    assert competing == {("letter", "GAMBLE"), ("letter", "SAMME")}


def test_the_size_equals_that_of_the_file(tmp_path):
    data = demo.DATA_SETS[1]
    parts = data.load(500)
    result = demo.measure(LEARNERS["LOMtree"], data, parts, verbose=0)
    learner = xmtree.LOMTreeClassifier(random_state=0).fit(parts.X_train, parts.y_train)
    learner.save(tmp_path / "model")
    assert result.megabytes == (tmp_path / "model").stat().st_size / 1e6
    assert result.error == pytest.approx(1 - learner.score(parts.X_test, parts.y_test))


def test_lines_of_the_table():
    first, second = demo.header().splitlines()
    precision = (0.5, 0.25, 0.125)
    result = demo.Result(
        demo.DATA_SETS[2], LEARNERS["LdSM x 10"], 0.5, precision, 1.0, 1.25, 0.0123
    )
    line = demo.line(result)
    assert len(first) == len(second) == len(line)
    assert line.split() == [
        *("onet-titles", "LdSM", "x", "10", "50.0", "/", "25.0", "/", "12.5", "%"),
        *("1.00", "1.25", "0.012"),
    ]
