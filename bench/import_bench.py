#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to read a trace in JSON as PyTorch writes them, beside other readers on the same file in the same run.

    BENCH_JSON_MB=500       size of the trace that is made
    BENCH_PEER_PYTHON=…     a Python that has orjson and HolisticTraceAnalysis, when they are to stand beside

CPU seconds are user and system time of the process and its children. orjson is the floor of what reading JSON into
memory costs: it interprets nothing.
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from load_bench import ROOT, TACHO, cost, row  # noqa: E402

PEER = os.environ.get("BENCH_PEER_PYTHON", sys.executable)
READERS = {
    "orjson.loads": "import orjson,sys; orjson.loads(open(sys.argv[1],'rb').read())",
    "json.load": "import json,sys; json.load(open(sys.argv[1]))",
    "HolisticTraceAnalysis, parse": "import sys; from hta.common.trace_parser import parse_trace_dataframe as parse; "
                                    "from hta.configs.parser_config import ParserConfig; "
                                    "parse(sys.argv[1], ParserConfig.get_default_cfg())",
}


def build():
    """The program that imports and does nothing else, from the build of the tacho at hand."""
    folder = pathlib.Path(TACHO).resolve().parent
    subprocess.run(["ninja", "-C", folder, "import_bench"], check=True, stdout=subprocess.DEVNULL)
    return folder / "import_bench"


def main():
    mb = int(os.environ.get("BENCH_JSON_MB", "500"))
    with tempfile.TemporaryDirectory(prefix="tacho-bench-", dir=os.environ.get("BENCH_FOLDER")) as folder:
        path = pathlib.Path(folder) / "trace.json"
        subprocess.run([sys.executable, ROOT / "bench" / "kineto_make.py", path, str(mb)], check=True)
        packed = path.with_suffix(".json.gz")
        with open(path, "rb") as plain, gzip.open(packed, "wb", compresslevel=6) as out:
            shutil.copyfileobj(plain, out, 1 << 20)
        size = path.stat().st_size / 1e6
        print(f"\n{'':<42}{'wall':>11}{'CPU':>11}{'per CPU s':>14}{'peak':>12}{'CPU ratio':>11}")
        alone = cost([build(), path])
        row(f"{size:.0f} MB of JSON: scan and XSpace", size, alone, None)
        row("    the same as gzip", size, cost([build(), packed]), None)
        row("    tacho tool summary", size, cost([TACHO, "tool", "summary", path, "--json"]), None)
        for name, program in READERS.items():
            measured = cost([PEER, "-c", program, path])
            if measured is None:
                print(f"    {name}: not here")
            else:
                row(f"    {name}", size, measured, alone and alone[1])


if __name__ == "__main__":
    main()
