# SPDX-License-Identifier: BSL-1.0
"""Looks at a page of lib/report: in Chromium if there is one, else by Node."""
import os
import re
import shutil
import subprocess

SUPPORT = os.path.dirname(os.path.abspath(__file__))


def check_page(test, path):
    """It stands alone, and all its charts are drawn without an error."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    test.assertNotRegex(page, r"<link|<img|\ssrc=|@import")
    charts = page.count('<figure class="chart">')
    node = shutil.which("node")
    if node is not None:
        drawn = subprocess.run([node, os.path.join(SUPPORT, "draw_page.js"), path],
                               capture_output=True, text=True, timeout=60)
        test.assertEqual(drawn.stderr, "")
        test.assertEqual(int(drawn.stdout), charts)
    browser = shutil.which("chromium")
    if browser is not None:
        seen = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={path}.browser", "--dump-dom", "file://" + os.path.abspath(path)],
            capture_output=True, text=True, timeout=120)
        said = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
        test.assertEqual(said, [])
        test.assertEqual(len(re.findall("<canvas", seen.stdout)), charts)
    return page
