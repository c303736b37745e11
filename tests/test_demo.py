"""The demo: the table, the page, the plots."""

import re
from xml.etree import ElementTree

import pytest
from xmtree import demo
from xmtree.cli import main
from xmtree.demo import charts, report


def test_the_demo_end_to_end(tmp_path, capsys):
    page = tmp_path / "demo.html"
    assert main(["demo", "--rows", "400", "-o", str(page)]) == 0
    out = capsys.readouterr().out
    for name in (
        "naics",
        "letter",
        "onet-titles",
        "OAA, softmax",
        "LOMtree x 10",
        "Recall Tree",
        "Filter tree",
        "GAMBLE",
        "SAMME",
        str(page),
    ):
        assert name in out
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="?http', text)
    plots = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    assert len(plots) >= 12
    for plot in plots:
        ElementTree.fromstring(plot)


def test_boosting_competes_on_tables_alone():
    competing = {
        (data.name, contender.name)
        for data in demo.DATA_SETS
        for contender in demo.CONTENDERS
        if not contender.text and contender.competes_on(data)
    }
    assert competing == {("letter", "GAMBLE"), ("letter", "SAMME")}


def test_every_contender_has_a_colour_of_its_own():
    slots = [contender.slot for contender in demo.CONTENDERS]
    assert len(set(slots)) == len(slots)
    for slot in slots:
        for rule in (f"--s{slot}: #", f".s{slot} {{", f".l{slot} {{", f".b{slot} {{"):
            assert rule in report.style()


BARS = [charts.Bar("a & <b>", 2.0, "2", 1), charts.Bar("none", 0.0, "0", 2)]


@pytest.mark.parametrize(
    "plot",
    [
        charts.bars("t", BARS),
        charts.bars("t", []),
        charts.columns("t", [0, 3, 1], "x", 1.5, "mark"),
        charts.columns("t", [], "x", 1.5, "mark"),
        charts.curves("t", [charts.Curve("c", [(64, 1.0), (128, 20.0)], 1)], "x", "y"),
        charts.curves("t", [charts.Curve("c", [(64, 1.0)], 1)] * 3, "x", "y"),
        charts.scatter("t", [charts.Point("p", 1.0, 0.0, 1)], "x", "y"),
        charts.tree("t", [charts.Branch(-1, 1.0, "100", "a & <b>", True)]),
        charts.tree("t", [charts.Branch(at // 4 - (at == 0), 0.1, "1", "x") for at in range(85)]),
        charts.tree("t", [charts.Branch(at - 1, 0.1, "1", "x") for at in range(9)]),
        charts.scatter("t", [charts.Point("p", 1.0, 5.0, 1)] * 4, "x", "y"),
    ],
)
def test_plots_are_sound_xml_inside_their_box(plot):
    root = ElementTree.fromstring(plot)
    width, height = map(float, root.get("viewBox").split()[2:])
    for element in root.iter():
        for name in ("x", "y", "cx", "cy"):
            value = element.get(name)
            if value is not None:
                assert 0 <= float(value) <= (width if "x" in name else height)


def test_names_of_points_keep_apart():
    names = [("LOMtree", 0.9, 35.7), ("OAA, softmax", 2.8, 32.4), ("LOMtree x 10", 14.4, 31.7)]
    names += [("OAA", 4.6, 31.2), ("Recall Tree", 8.3, 31.2)]
    root = ElementTree.fromstring(charts.scatter("t", [charts.Point(*n, 1) for n in names], "", ""))
    spans = []
    for text in root.iter("text"):
        if text.get("class").startswith("end"):
            x, long = float(text.get("x")), 7.5 * len(text.text)
            begin = x if text.get("text-anchor") == "start" else x - long
            spans.append((begin, begin + long, float(text.get("y"))))
    assert len(spans) == len(names)
    for at, (begin, end, line) in enumerate(spans):
        for low, high, other in spans[:at]:
            assert end < low or high < begin or abs(line - other) >= 14
