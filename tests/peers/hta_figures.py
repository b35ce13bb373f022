# SPDX-License-Identifier: Apache-2.0
"""What HolisticTraceAnalysis says of one trace, as JSON; run by the Python that has it: hta_figures.py TRACE.json.gz"""
import gzip
import json
import logging
import os
import sys
import tempfile
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # else it rounds every begin up and every end down to whole microseconds
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from hta.trace_analysis import TraceAnalysis  # noqa: E402


def write_work(path, copy):
    """Without waits of a stream ("Stream Wait Event"), which HTA takes for kernels that compute, and without marks of
    steps, by which it leaves out what was launched outside of them."""
    with gzip.open(path) as f:
        document = json.load(f)
    document["traceEvents"] = [
        e for e in document["traceEvents"]
        if e.get("cat") != "cuda_sync" and not e.get("name", "").startswith("ProfilerStep")]
    with gzip.open(copy, "wt") as f:
        json.dump(document, f)


def figures(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "trace.json.gz")
        write_work(path, copy)
        t = TraceAnalysis(trace_files={0: copy}, trace_dir=folder)
        temporal = t.get_temporal_breakdown(visualize=False).iloc[0]
        overlap = t.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
        kinds, kernels = t.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=1_000_000,
                                                    include_memory_kernels=True)
        idle, _ = t.get_idle_time_breakdown(ranks=[0], visualize=False)
    return {
        "idle_us": float(temporal["idle_time(us)"]), "compute_us": float(temporal["compute_time(us)"]),
        "non_compute_us": float(temporal["non_compute_time(us)"]), "kernel_us": float(temporal["kernel_time(us)"]),
        "overlap_percent": None if overlap != overlap else float(overlap),
        "kinds": {row["kernel_type"]: float(row["sum"]) for _, row in kinds.iterrows()},
        "kernels": [[row["name"], row["kernel_type"], float(row["sum (us)"]), float(row["max (us)"]),
                     float(row["min (us)"])] for _, row in kernels.iterrows()],
        "idle_of_streams": [[int(row["stream"]), row["idle_category"], float(row["idle_time"])]
                            for _, row in idle.iterrows()],
    }


print(json.dumps(figures(sys.argv[1])))
