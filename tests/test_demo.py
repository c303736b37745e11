"""The demo: the table and the page."""

import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import xmtree
from pictures import cut_off, overlapping
from xmtree import demo
from xmtree.cli import main
from xmtree.demo.page import errors_figure, times_figure

LEARNERS = {contender.name: contender for contender in demo.CONTENDERS}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A short run: its page and what it prints."""
    page = tmp_path_factory.mktemp("demo") / "demo.html"
    command = [sys.executable, "-m", "xmtree", "demo", "--rows", "200", "-o", str(page)]
    told = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
    return page, told.stdout


def test_what_is_printed(ran):
    page, out = ran
    rows = [
        line for line in out.splitlines() if line.startswith(("naics ", "letter ", "onet-titles "))
    ]
    assert len(rows) == 7 + 9 + 2
    for name in LEARNERS:
        assert any(f" {name} " in row for row in rows)
    assert str(page) in out


def test_the_page(ran):
    text = ran[0].read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="?http|@import|url\(["\']?http', text)
    assert "prefers-color-scheme: dark" in text
    plots = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    assert len(plots) == 2 + 1 + 1 + 1
    for plot in plots:
        ElementTree.fromstring(plot)
    assert [len(re.findall(f">{name}<", plots[0])) for name in ("OAA", "LOMtree x 10")] == [1, 1]
    titles = re.findall("<h2>(.*?)</h2>", text)
    assert re.fullmatch(r"naics: \d+ labels", titles[1])
    assert titles[0] == "Time against the number of labels"
    assert titles[2:] == ["letter: 26 labels", "onet-titles: 1,016 labels", "All figures"]
    assert "OAA, softmax has loss=&#x27;softmax&#x27;; LOMtree x 10 has n_estimators=10" in text
    assert re.search(r"2\d\d training rows with \d+ of 1,055 labels; 4,012 test rows.", text)
    ids = re.findall(r'id="([^"]*)"', "".join(plots))
    definitions = {one: re.findall(f'[^>]*id="{one}".*?/>', "".join(plots), re.S) for one in ids}
    assert all(len(set(of_one)) == 1 for of_one in definitions.values() if of_one)


def test_texts_in_the_browser(ran, tmp_path):
    """With the browser's fonts, too, no text of a plot covers another or leaves the plot."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium")
    script = """<script>
      const found = []
      for (const svg of document.querySelectorAll("svg")) {
        const frame = svg.getBoundingClientRect()
        const boxes = [...svg.querySelectorAll("text")].map(
          text => [text.textContent, text.getBoundingClientRect()])
        boxes.forEach(([one, a], at) => {
          if (a.left < frame.left || a.right > frame.right) found.push(one)
          for (const [other, b] of boxes.slice(0, at))
            if (a.left + 2 < b.right && b.left + 2 < a.right && a.top + 4 < b.bottom
                && b.top + 4 < a.bottom) found.push(one + " on " + other)
        })
        found.push(boxes.length > 5 ? "read" : "no texts")
      }
      document.title = found.join("|")
    </script>"""
    page = tmp_path / "page.html"
    text = ran[0].read_text(encoding="utf-8").replace("</body>", f"{script}</body>")
    page.write_text(text, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command = [chromium, *options, "--window-size=1200,900", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if shown.returncode:
        pytest.skip("chromium does not start here")
    assert re.search("<title>(.*?)</title>", shown.stdout)[1].split("|") == ["read"] * 5


def test_without_matplotlib(tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "xmtree.demo.page")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(demo, "DATA_SETS", demo.DATA_SETS[1:2])
    page = tmp_path / "demo.html"
    assert main(["demo", "--rows", "200", "-o", str(page)]) == 0
    out = capsys.readouterr().out
    assert "pip install matplotlib" in out
    assert not page.exists()


def test_boosting_competes_on_tables_alone():
    competing = {
        (data.name, contender.name)
        for data in demo.DATA_SETS
        for contender in demo.CONTENDERS
        if not contender.text and contender.competes_on(data)
    }
    assert competing == {("letter", "GAMBLE"), ("letter", "SAMME")}


def test_data_sets_are_described_by_their_numbers():
    naics, letter, onet = demo.DATA_SETS
    assert "16,045 training rows with 1,048 of 1,055 labels" in naics.description(naics.load())
    parts = letter.load(100)
    assert letter.description(parts).endswith("100 training rows with 26 labels; 4,000 test rows.")
    parts = onet.load()
    assert "35,015 training rows with 1,016 labels, 1.2 per row" in onet.description(parts)


def test_size_is_that_of_the_file(tmp_path):
    data = demo.DATA_SETS[1]
    parts = data.load(500)
    result = demo.measure(LEARNERS["LOMtree"], data, parts, verbose=0)
    learner = xmtree.LOMTreeClassifier(random_state=0).fit(parts.X_train, parts.y_train)
    learner.save(tmp_path / "model")
    assert result.megabytes == (tmp_path / "model").stat().st_size / 1e6
    assert result.error == pytest.approx(1 - learner.score(parts.X_test, parts.y_test))


def scaled(name, n_labels, fit, predict):
    return demo.Scaling(LEARNERS[name], n_labels, fit, predict)


def test_what_scaling_shows():
    curves = [
        scaled("OAA", [64, 256, 1024], [1.0, 4.0, 16.0], [2.0, 8.0, 32.0]),
        scaled("LOMtree", [64, 256, 1024, 4096], [2.0, 2.0, 2.0, 2.0], [1.0, 2.0, 2.0, 2.0]),
        scaled("Recall Tree", [64, 256, 1024], [20.0, 24.0, 32.0], [3.0, 9.0, 33.0]),
        scaled("Filter tree", [64], [1.0], [1.0]),
    ]
    figure = times_figure("t", curves, "predict_us")
    lines = figure.axes[0].lines
    for line, curve in zip(lines, curves, strict=True):
        assert line.get_xydata().T.tolist() == [curve.n_classes, curve.predict_us]
    assert overlapping(figure) == cut_off(figure) == []


def result(name, error, us, seconds=1.0, precision=()):
    data = demo.DATA_SETS[2]
    return demo.Result(data, LEARNERS[name], error, precision, seconds, us, 0.0123, 1000)


def test_lines_of_the_table():
    first, second = demo.header().splitlines()
    told = demo.line(result("LdSM x 10", 0.5, 1.25, precision=(0.5, 0.25, 0.125)))
    assert len(first) == len(second) == len(told)
    assert told.split() == [
        *("onet-titles", "LdSM", "x", "10", "50.0", "/", "25.0", "/", "12.5", "%"),
        *("1.00", "1.25", "0.012"),
    ]


def test_each_learner_is_a_point():
    rows = [result(name, 0.1 * at, 1.0 + at) for at, name in enumerate(LEARNERS)]
    figure = errors_figure(rows)
    points = [tuple(line.get_xydata()[0]) for line in figure.axes[0].lines]
    assert points == [(row.us_per_prediction, row.error) for row in rows]
    assert figure.axes[0].get_ylim()[0] >= 0
    assert [text.get_text() for text in figure.legends[0].texts] == list(LEARNERS)
    assert overlapping(figure) == cut_off(figure) == []
