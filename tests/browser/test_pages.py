"""The report and the animation in a real browser. Run by run.sh: test_pages.py CHROMIUM QDC FOLDER."""
import csv
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cdp import Browser  # noqa: E402

chromium, qdc, folder = sys.argv[1:4]
WIDTHS = {"phone": 400, "desk": 1200, "wide": 1920}
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
        assert shown(browser, "diagonal") == f"{100 * report['diagonal_share']:.1f} %"
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
    labels = browser.run("JSON.parse(document.querySelector('.by-hand + script').textContent).labels")
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
    number = lambda cell: float(cell.split()[0])  # 74.86 ± 3.43
    up = [number(cell) for cell in browser.run(column % 1)]
    assert up == sorted(up), up
    browser.run(press % 1)
    assert [number(cell) for cell in browser.run(column % 1)] == up[::-1], "a second press turns the order round"
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
        ink[dark] = [browser.run(style % pair) for pair in (("body", "color"), ("body", "backgroundColor"), (".drawing svg.wide text", "fill"))]
    assert all(light != dark for light, dark in zip(ink[False], ink[True])), f"drawings and page follow the theme: {ink}"
    browser.look(1000, dark=True, printed=True)
    paper = browser.run("getComputedStyle(document.documentElement).getPropertyValue('--page')").strip()
    assert paper == "#fff", "paper is white, whatever the screen"
    browser.look(1000)
    browser.print(here("report.pdf"))
    assert os.path.getsize(here("report.pdf")) > 10_000


def figures_are_as_wide_as_the_text(browser):
    """One of the two drawings of every figure shows, and it is as wide as the page's text."""
    browser.open(here("report.html"))
    for name, width in WIDTHS.items():
        browser.look(width)
        text = browser.run("document.querySelector('section').getBoundingClientRect().width")
        widths = browser.run("[...document.querySelectorAll('.drawing')].map(drawing => "
                             "[...drawing.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().width))")
        assert all(abs(sum(pair) - text) < 1 and min(pair) == 0 for pair in widths), (name, text, widths)
        letters = browser.run("(() => { const svg = [...document.querySelectorAll('.drawing svg')].find(s => s.getBoundingClientRect().width);"
                              "return 9 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width })()")
        assert 9.5 < letters < 15, f"letters of {letters} pixels at {width}"


def place_of(browser, title, number):
    """Words of a reading of a figure, and its place in the window, scrolled there."""
    return browser.run("""(() => {
      const drawing = [...document.querySelectorAll('.drawing')].find(d => d.getAttribute('aria-label') === %s);
      drawing.scrollIntoView({ block: 'center' });
      const data = JSON.parse(drawing.querySelector('script').textContent);
      const svg = [...drawing.querySelectorAll('svg')].find(s => s.getBoundingClientRect().width);
      const rect = svg.getBoundingClientRect(), scale = rect.width / svg.viewBox.baseVal.width;
      const [x, y, width, height] = data[svg.classList[0]][%d];
      return [data.texts[%d], rect.left + scale * (x + width / 2), rect.top + scale * (y + height / 2), data.texts.length];
    })()""" % (json.dumps(title), number, number))


NOTE = "document.getElementById('reading').hidden ? null : document.getElementById('reading').textContent"
FIGURES = ("The spectrum and the filter", "Before and after", "Where like is joined to like", "Networks compared",
           "Training curves", "The window that was learned", "Why quantum")


def values_show_where_the_mouse_points(browser):
    browser.open(here("report.html"))
    for name, width in WIDTHS.items():
        browser.look(width)
        for title in FIGURES:
            for number in (0, 7):
                words, x, y, _ = place_of(browser, title, number)
                browser.point(x, y)
                said = browser.run(NOTE)
                # Of several readings at one place any may answer.
                assert said and said.split("\n")[0].split(" ")[0] == words.split("\n")[0].split(" ")[0], (name, title, words, said)
                box = browser.run("(() => { const r = document.getElementById('reading').getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom] })()")
                assert box[0] >= 0 and box[1] <= width and box[2] >= 0, f"{title}: the note stays in the window: {box}"
                assert not (box[0] < x < box[1] and box[2] < y < box[3]), f"{title}: the note does not cover what it names"
        browser.point(2, 2)
        assert browser.run(NOTE) is None, "the note goes when the mouse leaves"
    words, x, y, _ = place_of(browser, "The spectrum and the filter", 20)
    browser.point(x, y)
    assert browser.run(NOTE) == words and "eigenvalues from" in words and "gaussian" in words, words
    browser.screenshot(here("hover.png"))


def values_show_under_a_finger(browser):
    browser.send("Emulation.setTouchEmulationEnabled", enabled=True)
    browser.look(WIDTHS["phone"])
    browser.open(here("report.html"))
    words, x, y, _ = place_of(browser, "The spectrum and the filter", 30)
    browser.touch(x, y)
    assert browser.run(NOTE) == words, (words, browser.run(NOTE))
    browser.touch(3, 3)
    assert browser.run(NOTE) is None, "a touch elsewhere puts the note away"
    browser.send("Emulation.setTouchEmulationEnabled", enabled=False)


def values_show_for_the_keyboard(browser):
    browser.look(WIDTHS["desk"])
    browser.open(here("report.html"))
    first, _, _, count = place_of(browser, "The spectrum and the filter", 0)
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.getAttribute('aria-label')") == "The spectrum and the filter"
    assert browser.run(NOTE) == first, "focus shows a value"
    browser.press("ArrowRight", 39)
    assert browser.run(NOTE) == place_of(browser, "The spectrum and the filter", 1)[0]
    browser.press("ArrowLeft", 37)
    assert browser.run(NOTE) == first
    browser.press("End", 35)
    assert browser.run(NOTE) == place_of(browser, "The spectrum and the filter", count - 1)[0]
    browser.press("ArrowRight", 39)
    assert browser.run(NOTE) == place_of(browser, "The spectrum and the filter", count - 1)[0], "the last stays the last"
    browser.press("Escape", 27)
    assert browser.run(NOTE) is None
    assert browser.run("document.getElementById('reading').getAttribute('role')") == "status", "screen readers hear it"


def a_split_is_picked(browser):
    browser.look(WIDTHS["desk"])
    browser.open(here("report.html"))
    layers = ("[...document.querySelectorAll('svg.%s g[data-layer]')]"
              ".filter(g => getComputedStyle(g).visibility === 'visible').map(g => +g.dataset.layer)")
    for each in ("wide", "narrow"):
        assert browser.run(layers % each) == [0], "the first split shows"
    button = "document.querySelectorAll('.layers input')[%d]"
    x, y = browser.run(f"(() => {{ const b = {button % 3}; b.scrollIntoView({{ block: 'center' }}); const r = b.getBoundingClientRect();"
                       "return [r.left + r.width / 2, r.top + r.height / 2] })()")
    browser.click(x, y)
    assert browser.run(layers % "wide") == [3] == browser.run(layers % "narrow"), browser.run(layers % "wide")
    browser.press("ArrowRight", 39)
    assert browser.run(layers % "wide") == [4], "arrow keys move on to the next split"
    # The values follow: the mouse over the curves reads those of this split, not of the first.
    data = "JSON.parse([...document.querySelectorAll('.drawing')].find(d => d.getAttribute('aria-label') === 'Training curves').querySelector('script').textContent)"
    number = browser.run(f"{data}.layers.indexOf(4)") + 2
    words, x, y, _ = place_of(browser, "Training curves", number)
    browser.point(x, y)
    said = browser.run(NOTE)
    readings = browser.run(f"(() => {{ const d = {data}; return d.texts.filter((_, at) => d.layers[at] === 4) }})()")
    assert said in readings and said.startswith("step "), (said, words)
    browser.screenshot(here("split.png"))


def a_kernel_that_is_nearly_the_identity_is_called_so(browser):
    notice = "[...document.querySelectorAll('.notice')].filter(n => n.getClientRects().length).map(n => n.textContent)"
    browser.open(here("report.html"))
    assert browser.run(notice) == [], "this kernel joins vertices"
    for name, value in (("mu", 0), ("sigma", 1), ("epsilon", -0.5)):  # a level filter and a high threshold
        move(browser, slider(name), value)
    told = browser.run(notice)
    assert len(told) == 1 and told[0].startswith("Nearly the identity: this network is an MLP."), told
    assert shown(browser, "diagonal") == "100.0 %"
    move(browser, slider("sigma"), 0.2)
    move(browser, slider("epsilon"), -3)
    assert browser.run(notice) == [], "and goes when it is no longer true"
    build("report", SMALL, "--sigma", "20", "--epsilon", "0.01", "--no-training", "-o", here("identity.html"))
    browser.open(here("identity.html"))
    told = browser.run(notice)
    assert len(told) == 2 and all("Nearly the identity" in text for text in told), told
    assert "None of the kernel's weight joins different vertices" in told[0], told
    browser.screenshot(here("identity.png"))


def entries_of_the_kernel_are_read_from_its_picture(browser):
    browser.open(here("report.html"))
    canvas = "document.querySelector('canvas')"
    x, y, size = browser.run(f"(() => {{ {canvas}.scrollIntoView({{ block: 'center' }}); const r = {canvas}.getBoundingClientRect();"
                             "return [r.left, r.top, r.width] })()")
    browser.point(x + 0.5 / 120 * size, y + 0.5 / 120 * size)
    said = browser.run(NOTE).split("\n")
    vertex = int(said[0].split()[1])
    value = browser.run(f"window.qdc[0].kernel(0.3, 0.2, 0.01)[{vertex * 121}]")
    assert said[0] == said[1] and abs(float(said[2]) / value - 1) < 0.01, (said, value)


def a_graph_too_large_for_sliders_says_so(browser):
    build("report", LARGE, "--no-training", "-o", here("large.html"))
    browser.look(WIDTHS["wide"])
    browser.open(here("large.html"))
    text = browser.run("document.body.innerText")
    assert "This graph has 450 vertices" in text and "up to 400" in text, "the page says why there are no sliders"
    assert browser.run(f"{slider('mu')}") is None
    assert browser.run("document.querySelectorAll('.drawing svg.wide').length") == 4, "and shows the rest"


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
    assert browser.run(text % "heat-most").startswith("\u2265"), "a scale that clips says so"
    assert browser.run("document.querySelector('#quantum title').textContent").startswith("vertex 0: 0."), "a vertex can be read"
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
         light_dark_narrow_and_printed, figures_are_as_wide_as_the_text, values_show_where_the_mouse_points,
         values_show_under_a_finger, values_show_for_the_keyboard, a_split_is_picked,
         a_kernel_that_is_nearly_the_identity_is_called_so, entries_of_the_kernel_are_read_from_its_picture, a_graph_too_large_for_sliders_says_so,
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
