"""The report in a real browser, where Chromium is installed: it renders, in both colour schemes, also at 400 pixels."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import maxmargin as mm

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--window-size=1400,1000",
]  # fmt: skip
# Measures each frame from outside: the page itself may not run scripts.
HARNESS = """<!DOCTYPE html><meta charset="utf-8"><body>%s<script>
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement, style = frame.contentWindow.getComputedStyle(page.body);
    const size = selector => [...page.querySelectorAll(selector)].map(e => e.getBoundingClientRect());
    return {width: frame.clientWidth, scroll: root.scrollWidth, height: root.scrollHeight, back: style.backgroundColor,
      ink: style.color, charts: size("svg").map(r => [r.width, r.height]), text: Math.min(...size("svg text").map(r =>
      Math.min(r.width, r.height))), letters: Math.min(...size("svg text.tick").map(r => r.height)),
      curves: size("polyline").map(r => r.width), cells: size(".matrix td").length, title: page.title};
  });
  document.body.innerHTML = "<pre id=out>" + JSON.stringify(seen) + "</pre>";
});
</script></body>"""


@pytest.fixture(scope="module")
def page() -> str:
    X, y = make_blobs(300, centers=4, n_features=5, cluster_std=4, random_state=0)
    names = np.array(["a", "a class with a rather long name that has to go somewhere", "c", "d"])
    return mm.report(mm.SVC(working_set_size=8, C=10).fit(X, names[y]), X, names[y], title="A report").html


def look(page: str, folder, *flags: str) -> list[dict]:
    """What the browser made of the page at three widths; fails if it complains of anything."""
    frames = "".join(f'<iframe style="width:{w}px;height:900px;border:0" srcdoc="{html.escape(page)}"></iframe>'
                     for w in (320, 400, 1100))  # fmt: skip
    (folder / "harness.html").write_text(HARNESS % frames, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"file://{folder}/harness.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    return json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', done.stdout, flags=re.S)[1]))


def brightness(color: str) -> float:
    return sum(int(c) for c in re.findall(r"\d+", color)[:3]) / (3 * 255)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian's package chromium)")
@pytest.mark.parametrize(("flags", "dark"), [((), False), (("--force-dark-mode",), True)], ids=["light", "dark"])
def test_in_a_browser(page, tmp_path, flags, dark) -> None:
    frames = look(page, tmp_path, *flags)
    assert [frame["width"] for frame in frames] == [320, 400, 1100]
    for frame in frames:
        assert frame["title"] == "A report" and frame["height"] > 900
        assert frame["scroll"] <= frame["width"], "wider than the screen"
        assert len(frame["charts"]) >= 1 and all(100 < w <= frame["width"] and h > 100 for w, h in frame["charts"])
        assert frame["letters"] >= 9, "text of charts must be readable"
        assert frame["curves"] and max(frame["curves"]) > 5 and frame["cells"] == 16
        back, ink = brightness(frame["back"]), brightness(frame["ink"])
        assert (back < 0.2 and ink > 0.8) if dark else (back > 0.9 and ink < 0.3)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian's package chromium)")
def test_the_policy_stops_a_script_if_one_got_in(page, tmp_path) -> None:
    """And the browser's complaint about it is seen by the other tests."""
    with pytest.raises(AssertionError, match="Content Security Policy"):
        look(page.replace("</body>", "<script>document.title = 'run'</script></body>"), tmp_path)
