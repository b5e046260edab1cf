"""The report and the animation in a real browser. Run by run.sh: test_pages.py CHROMIUM QDC FOLDER."""
import csv
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cdp import Browser  # noqa: E402

chromium, qdc, folder = sys.argv[1:4]


def build(*arguments):
    subprocess.run([qdc, "--quiet", *arguments], check=True, stdout=subprocess.DEVNULL)


def move(browser, slider, value):
    browser.run(f"(() => {{ const s = document.getElementById('{slider}'); s.value = {value};"
                "s.dispatchEvent(new Event('input')); })()")


def report(browser):
    page = os.path.join(folder, "report.html")
    build("report", "karate", "--mu", "0.3", "--sigma", "0.2", "--epsilon", "0.01", "-o", page)
    browser.look(1100)
    browser.open(page)
    before = browser.run("document.getElementById('k-entries').textContent")
    for mu, sigma, epsilon in [(0.3, 0.2, 0.01), (-0.4, 0.35, 0.003)]:
        kernel = os.path.join(folder, "kernel.csv")
        build("kernel", "karate", "--mu", str(mu), "--sigma", str(sigma), "--epsilon", str(epsilon), "-o", kernel)
        expected = {}
        with open(kernel, newline="") as file:
            for row in csv.reader(file):
                try:
                    expected[int(row[0]), int(row[1])] = float(row[2])
                except (ValueError, IndexError):
                    continue  # a heading
        assert expected, "the kernel file holds entries"
        entries = browser.run(f"Array.from(window.qdc.kernel({mu}, {sigma}, {epsilon}))")
        nodes = round(len(entries) ** 0.5)
        worst = max(abs(value - expected.get(divmod(at, nodes), 0.0)) for at, value in enumerate(entries))
        assert worst < 1e-5, f"the page's kernel is off by {worst}"
        print(f"kernel at mu {mu}, sigma {sigma}: page and qdc agree to {worst:.1e}")
    move(browser, "mu", 0.9)
    move(browser, "sigma", 0.5)
    move(browser, "epsilon", -1)
    after = browser.run("document.getElementById('k-entries').textContent")
    assert after != before, "the sliders redraw"
    assert browser.run("document.getElementById('mu-value').textContent") == "0.90"
    browser.run("document.getElementById('mu').focus()")
    assert browser.run("document.activeElement.id") == "mu", "sliders take the keyboard"
    browser.screenshot(os.path.join(folder, "report-light.png"))
    browser.look(1100, dark=True)
    browser.screenshot(os.path.join(folder, "report-dark.png"))
    browser.look(420)
    assert browser.run("document.documentElement.scrollWidth <= 420"), "the page fits a telephone"


def table(browser):
    """The report's script sorts any table of class sortable; the page of a graph has none, so one is put in."""
    page = os.path.join(folder, "report.html")
    with open(page) as file:
        text = file.read()
    rows = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in [("b", 10), ("a", 9), ("c", 100)])
    heads = "".join(f'<th aria-sort="none"><button type="button">{name}</button></th>' for name in ("name", "value"))
    markup = f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></main>'
    sorted_page = os.path.join(folder, "table.html")
    with open(sorted_page, "w") as file:
        file.write(text.replace("</main>", markup, 1))
    browser.open(sorted_page)
    column = "[...document.querySelectorAll('table.sortable tbody tr')].map(r => r.cells[%d].textContent).join(' ')"
    press = "document.querySelectorAll('table.sortable th button')[%d].click()"
    browser.run(press % 1)
    assert browser.run(column % 1) == "9 10 100", "numbers sort as numbers"
    browser.run(press % 1)
    assert browser.run(column % 1) == "100 10 9", "a second press turns the order round"
    browser.run(press % 0)
    assert browser.run(column % 0) == "a b c"


def too_large(browser):
    page = os.path.join(folder, "large.html")
    build("report", "grid:25x25", "-o", page)
    browser.open(page)
    assert "625 vertices" in browser.run("document.body.innerText"), "the page says why there are no sliders"
    assert browser.run("document.getElementById('mu')") is None


def animation(browser):
    page = os.path.join(folder, "animation.html")
    build("figure", "animation", "-o", page)
    browser.look(1000)
    browser.open(page)
    move(browser, "time", 50)
    assert browser.run("document.getElementById('now').textContent") == "50"
    assert browser.run("document.getElementById('heat-across').textContent") == "7.4 % across"
    assert browser.run("document.getElementById('quantum-across').textContent") == "76.5 % across"
    browser.screenshot(os.path.join(folder, "animation.png"))


browser = Browser(chromium)
try:
    for test in (report, table, too_large, animation):
        test(browser)
        assert not browser.errors, f"{test.__name__}: the console says {browser.errors}"
        print(f"{test.__name__}: ok")
finally:
    browser.close()
