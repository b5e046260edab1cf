"""Just enough of the Chrome DevTools protocol, over a pipe, with nothing but the standard library."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


class Browser:
    """A headless Chromium with one page; collects errors and warnings of the console, and every address it asks for."""

    def __init__(self, program, reachable=None):
        """Nothing on the network can be reached, except for one address if it is named."""
        hosts = "MAP * ~NOTFOUND" + (f", EXCLUDE {reachable}" if reachable else "")
        self.profile = tempfile.mkdtemp(prefix="qdc-browser-")
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()

        def set_pipes():  # the protocol speaks on file descriptors 3 and 4
            read, write = os.dup(to_child), os.dup(from_child)
            os.dup2(read, 3)
            os.dup2(write, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--remote-debugging-pipe", f"--host-resolver-rules={hosts}",
                 f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen([program, *flags], preexec_fn=set_pipes, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.number, self.errors, self.requests, self.session = b"", 0, [], [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def _receive(self):
        while b"\0" not in self.buffer:
            chunk = os.read(self.read_end, 1 << 16)
            if not chunk:
                raise RuntimeError("the browser went away")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["args"])[:500])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        return message

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        """A key, as a person would press it."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def point(self, x, y):
        """The mouse, moved to a place of the window."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        self.point(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def touch(self, x, y):
        """A finger that touches a place of the window, and leaves."""
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def look(self, width, dark=False, printed=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media="print" if printed else "", features=[scheme])

    def screenshot(self, path):
        """The whole page, not only what the window shows."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        self._keep(path, self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip))

    def print(self, path):
        """The page as it would be printed."""
        self._keep(path, self.send("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69))

    @staticmethod
    def _keep(path, answer):
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def close(self):
        try:
            os.write(self.write_end, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
