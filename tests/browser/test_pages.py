"""The report and the animation in a real browser. Run by run.sh: test_pages.py CHROMIUM QDC FOLDER."""
import csv
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cdp import Browser  # noqa: E402

chromium, qdc, folder = sys.argv[1:4]
WIDTHS = {"phone": 390, "column": 720, "wide": 1400}
# Two labelled graphs that need no data: one small, one beyond the limit of the sliders.
SMALL, LARGE = "csbm:n=120,homophily=0.2,seed=1", "csbm:n=450,homophily=0.2,seed=1"


def here(name):
    return os.path.join(folder, name)


def build(*arguments):
    finished = subprocess.run([qdc, "--quiet", "--json", *arguments], check=True, stdout=subprocess.PIPE)
    return json.loads(finished.stdout)


def move(browser, slider, value):
    """Sets a slider of the first graph, as dragging it would."""
    browser.run(f"(() => {{ const s = {slider}; s.value = {value}; s.dispatchEvent(new Event('input')); }})()")


def slider(name):
    return f"document.querySelector('[data-move={name}]')"


def shown(browser, name):
    return browser.run(f"document.querySelector('[data-show={name}]').textContent")


def fits(browser, width):
    assert browser.run("document.documentElement.scrollWidth") <= width, f"nothing hangs out of a page of {width} pixels"


def sliders_recompute_the_kernel(browser):
    """The numbers in the page are those of `qdc kernel` and `qdc homophily`, wherever the sliders stand."""
    build("report", SMALL, "--mu", "0.3", "--sigma", "0.2", "--epsilon", "0.01", "-o", here("report.html"))
    browser.look(WIDTHS["wide"])
    browser.open(here("report.html"))
    first = browser.run("document.querySelector('[data-draw=pattern]').toDataURL()")
    for mu, sigma, logarithm in [(0.3, 0.2, None), (-0.42, 0.35, -2.5), (0.9, 0.05, -4.0)]:
        epsilon = 0.01 if logarithm is None else 10**logarithm
        if logarithm is not None:  # the first is how the page opens
            for name, value in (("mu", mu), ("sigma", sigma), ("epsilon", logarithm)):
                move(browser, slider(name), value)
        options = ["--mu", str(mu), "--sigma", str(sigma), "--epsilon", repr(epsilon)]
        report = build("kernel", SMALL, *options, "-o", here("kernel.csv"))
        assert shown(browser, "entries") == str(report["entries"]), (shown(browser, "entries"), report["entries"])
        assert shown(browser, "empty") == str(report["empty_rows"])
        assert shown(browser, "density") == f"{100 * report['density']:.2f} %"
        expected = {}
        with open(here("kernel.csv"), newline="") as file:
            for row in csv.reader(file):
                if row[0].isdigit():
                    expected[int(row[0]), int(row[1])] = float(row[2])
        assert len(expected) == report["entries"], "the kernel file holds every entry"
        entries = browser.run(f"Array.from(window.qdc[0].kernel({mu}, {sigma}, {epsilon!r}))")
        nodes = round(len(entries) ** 0.5)
        worst = max(abs(value - expected.get(divmod(at, nodes), 0.0)) for at, value in enumerate(entries))
        assert worst < 1e-5, f"the page's kernel is off by {worst}"
        print(f"  mu {mu}, sigma {sigma}: {report['entries']} entries, page and qdc agree to {worst:.0e}")
    assert browser.run("document.querySelector('[data-draw=pattern]').toDataURL()") != first, "the picture is redrawn"


def homophily_follows_the_sliders(browser):
    """With everything kept every pair is joined: homophily is what the classes' sizes give."""
    move(browser, slider("mu"), 1)
    move(browser, slider("sigma"), 1)
    move(browser, slider("epsilon"), -7)
    labels = browser.run("JSON.parse(document.querySelector('.by-hand script').textContent).labels")
    kernel = browser.run("Array.from(window.qdc[0].kernel(1, 1, 1e-7))")
    nodes, total = len(labels), 0.0
    for i in range(nodes):
        others = [j for j in range(nodes) if j != i and kernel[i * nodes + j] != 0]
        total += sum(labels[j] == labels[i] for j in others) / max(1, len(others))
    assert shown(browser, "homophily") == f"{total / nodes:.4f}"


def sliders_and_headings_take_the_keyboard(browser):
    browser.run(f"{slider('mu')}.focus()")
    before = float(shown(browser, "mu"))
    browser.press("ArrowLeft", 37)
    assert abs(float(shown(browser, "mu")) - (before - 0.01)) < 1e-9, "an arrow key moves a slider by a step"
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.dataset.move") == "sigma", "Tab goes to the next slider"
    heading = "document.querySelectorAll('table.sortable th')[1]"
    browser.run(f"{heading}.querySelector('button').focus()")
    browser.press("Enter", 13, "\r")
    assert browser.run(f"{heading}.getAttribute('aria-sort')") == "ascending", "Enter sorts"
    browser.press(" ", 32, " ")
    assert browser.run(f"{heading}.getAttribute('aria-sort')") == "descending", "Space sorts the other way"


def tables_sort(browser):
    column = "[...document.querySelectorAll('table.sortable tbody tr')].map(row => row.cells[%d].textContent)"
    press = "document.querySelectorAll('table.sortable th button')[%d].click()"
    assert len(browser.run(column % 0)) == 3, "the report trains three networks"
    browser.run(press % 1)
    up = [float(cell) for cell in browser.run(column % 1)]
    assert up == sorted(up), up
    browser.run(press % 1)
    assert [float(cell) for cell in browser.run(column % 1)] == up[::-1], "a second press turns the order round"
    browser.run(press % 0)
    assert browser.run(column % 0) == sorted(browser.run(column % 0)), "words sort as words"
    # Numbers are numbers, not words, and empty cells come last either way.
    browser.run("document.querySelectorAll('table.sortable tbody tr').forEach((row, i) => row.cells[1].textContent = ['9', '', '100'][i])")
    browser.run(press % 1)
    assert browser.run(column % 1) == ["9", "100", ""], browser.run(column % 1)
    browser.run(press % 1)
    assert browser.run(column % 1) == ["100", "9", ""], browser.run(column % 1)


def light_dark_narrow_and_printed(browser):
    browser.open(here("report.html"))
    ink = {}
    for dark in (False, True):
        for name, width in WIDTHS.items():
            browser.look(width, dark=dark)
            fits(browser, width)
            browser.screenshot(here(f"report-{name}-{'dark' if dark else 'light'}.png"))
        style = "getComputedStyle(document.querySelector(%r)).%s"
        ink[dark] = [browser.run(style % pair) for pair in (("body", "color"), ("body", "backgroundColor"), (".drawing svg text", "fill"))]
    assert all(light != dark for light, dark in zip(ink[False], ink[True])), f"drawings and page follow the theme: {ink}"
    browser.look(1000, dark=True, printed=True)
    paper = browser.run("getComputedStyle(document.documentElement).getPropertyValue('--page')").strip()
    assert paper == "#fff", "paper is white, whatever the screen"
    browser.look(1000)
    browser.print(here("report.pdf"))
    assert os.path.getsize(here("report.pdf")) > 10_000


def a_graph_too_large_for_sliders_says_so(browser):
    build("report", LARGE, "--no-training", "-o", here("large.html"))
    browser.look(WIDTHS["wide"])
    browser.open(here("large.html"))
    text = browser.run("document.body.innerText")
    assert "This graph has 450 vertices" in text and "up to 400" in text, "the page says why there are no sliders"
    assert browser.run(f"{slider('mu')}") is None
    assert browser.run("document.querySelectorAll('.drawing svg').length") == 4, "and shows the rest"


def a_graph_without_labels_has_sliders_and_no_homophily(browser):
    build("report", "grid:6x7", "-o", here("grid.html"))
    browser.open(here("grid.html"))
    assert shown(browser, "homophily") == "no labels"
    assert shown(browser, "entries") != ""


def two_graphs_in_one_report_do_not_mix(browser):
    build("report", "karate", SMALL, "--no-training", "-o", here("two.html"))
    browser.open(here("two.html"))
    assert browser.run("window.qdc.length") == 2
    second = "document.querySelectorAll('[data-show=entries]')[1].textContent"
    before = browser.run(second)
    move(browser, slider("epsilon"), -1)
    assert browser.run(second) == before, "the sliders of one graph leave the other alone"
    ids = browser.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)), "no name is used twice"


def the_animation_moves(browser):
    build("figure", "animation", "-o", here("animation.html"))
    for name, width in WIDTHS.items():
        browser.look(width, dark=name == "wide")
        browser.open(here("animation.html"))
        fits(browser, width)
        move(browser, "document.getElementById('time')", 50)
        browser.screenshot(here(f"animation-{name}.png"))
    text = "document.getElementById('%s').textContent"
    assert browser.run(text % "now") == "50"
    assert browser.run(text % "heat-across") == "7.4 % across"
    assert browser.run(text % "quantum-across") == "76.5 % across"
    browser.run("document.getElementById('time').focus()")
    browser.press("ArrowRight", 39)
    assert browser.run(text % "now") == "51"
    browser.run("document.getElementById('play').click()")
    moved = "new Promise(done => setTimeout(() => done(+document.getElementById('now').textContent), 400))"
    assert browser.run(moved) > 51, "Play plays"
    browser.run("document.getElementById('play').click()")
    assert browser.run(text % "play") == "Play"


TESTS = (sliders_recompute_the_kernel, homophily_follows_the_sliders, sliders_and_headings_take_the_keyboard, tables_sort,
         light_dark_narrow_and_printed, a_graph_too_large_for_sliders_says_so,
         a_graph_without_labels_has_sliders_and_no_homophily, two_graphs_in_one_report_do_not_mix, the_animation_moves)

browser = Browser(chromium)
try:
    for test in TESTS:
        test(browser)
        assert not browser.errors, f"{test.__name__}: the console says {browser.errors}"
        outside = [url for url in browser.requests if not url.startswith(("file://", "data:", "about:"))]
        assert not outside, f"{test.__name__}: the page asks the network for {outside}"
        files = {url for url in browser.requests if url.startswith("file://") and not url.endswith(".html")}
        assert not files, f"{test.__name__}: the page needs other files: {files}"
        print(f"{test.__name__}: ok")
finally:
    browser.close()
