"""optuna-dashboard shows a study of ours: opened in headless Chromium, read from the page.

  python dashboard.py STUDY.db STUDY_NAME BEST_VALUE CHROMIUM [SCREENSHOT.png]
"""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../tests/browser"))
from cdp import Browser  # noqa: E402

file, name, best, chromium = sys.argv[1:5]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = subprocess.Popen(
    [os.path.join(os.path.dirname(sys.executable), "optuna-dashboard"), f"sqlite:///{file}", "--host", "127.0.0.1", "--port", str(port)],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
browser = None


def shown(text, seconds=60):
    """Waits until the page shows a text."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        page = browser.run("document.body ? document.body.innerText : ''")
        if text in page:
            return
        time.sleep(0.2)
    raise SystemExit(f"'{text}' is not on the page:\n{page}")


try:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.2)
    browser = Browser(chromium, reachable="127.0.0.1")
    browser.look(1280)
    browser.send("Page.navigate", url=f"http://127.0.0.1:{port}/dashboard/")
    shown(name)
    browser.send("Page.navigate", url=f"http://127.0.0.1:{port}/dashboard/studies/1")
    shown("Best Trial")
    shown(best[:8])
    if len(sys.argv) > 5:
        time.sleep(2)  # plots are drawn after the text
        browser.screenshot(sys.argv[5])
finally:
    if browser:
        browser.close()
    server.terminate()
    server.wait()
print(f"optuna-dashboard shows '{name}' and its best value {best[:8]}")
