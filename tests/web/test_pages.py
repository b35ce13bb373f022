# SPDX-License-Identifier: Apache-2.0
"""The UI in a real browser, on the invented data of web/test/fixture.mjs. Needs node, chromium and
the built UI (`make web`); says so and skips where one is missing."""
import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def need_browser():
    for what, there in (("node", shutil.which("node")), (CHROMIUM, os.path.exists(CHROMIUM)),
                        ("web/node_modules", os.path.isdir(os.path.join(ROOT, "web/node_modules"))),
                        ("web/dist", os.path.exists(os.path.join(ROOT, "web/dist/index.html")))):
        if not there:
            pytest.skip(f"{what} is not there")


def run_pages(url, token, run, session):
    done = subprocess.run(["node", os.path.join(ROOT, "tests/web/pages.mjs"), url, token, run, session],
                          capture_output=True, text=True, timeout=900)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"^\d+ passed, 0 failed$", done.stdout, re.M)


def test_pages_on_invented_data():
    need_browser()
    server = subprocess.Popen(["node", os.path.join(ROOT, "web/test/fixture.mjs"), "0"], stdout=subprocess.PIPE,
                              text=True)
    try:
        url, token = server.stdout.readline().strip().split("/#token=")
        run_pages(url, token, "pretrain7b01", "s1")
    finally:
        server.terminate()
        server.wait(10)
