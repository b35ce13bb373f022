#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a trace as PyTorch's profiler writes them, as large as asked for.

    kineto_make.py FILE MEGABYTES

Operators with shapes, launches, kernels, their arrows, Python frames and allocator records in the proportions of
a real inference trace. The same size gives the same bytes.
"""
import sys

NAMES = ["aten::linear", "aten::addmm", "aten::layer_norm", "aten::native_layer_norm", "aten::gelu", "aten::empty",
         "aten::view", "aten::transpose", "aten::softmax", "aten::matmul", "aten::bmm", "aten::add_"]
KERNELS = ["void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
           "at::native::GeluType)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::"
           "BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl, std::array<char*, 2ul>)",
           "nvjet_tst_128x64_64x8_1x2_h_bz_TNT",
           "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)"]


def batch(i):
    """The entries of one operator: its Python frame, itself, a launch, a kernel and what ties them."""
    ts, corr = 1_000_000.0 + i * 11.5, 50_000 + i
    op, kernel = NAMES[i % len(NAMES)], KERNELS[i % len(KERNELS)]
    dims = f"[[{4 + i % 3}, 197, 768], [768, {768 + i % 5}], [768]]"
    return f"""  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/linear.py(116): forward", "pid": 5617, "tid": 5617,
    "ts": {ts:.3f}, "dur": 10.871,
    "args": {{
      "Python parent id": {i}, "Python id": {i + 1}, "Ev Idx": {i}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "{op}", "pid": 5617, "tid": 5617,
    "ts": {ts + 0.5:.3f}, "dur": 9.204,
    "args": {{
      "External id": {corr},"Record function id": 0, "Concrete Inputs": ["", "", "", "[16, 16]", "1"], "Input type": \
["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "ScalarList", "Scalar"], "Input Strides": {dims}, "Input Dims": \
{dims}, "Ev Idx": {i}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5617, "tid": 5617,
    "ts": {ts + 2:.3f}, "dur": 4.618,
    "args": {{
      "External id": {corr}, "cbid": 211, "correlation": {corr}
    }}
  }},
  {{
    "ph": "s", "id": {corr}, "pid": 5617, "tid": 5617, "ts": {ts + 2:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": 7,
    "ts": {ts + 5:.3f}, "dur": 6.848,
    "args": {{
      "External id": {corr}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {corr},
      "registers per thread": 32, "shared memory": {1024 + i % 7}, "blocks per SM": 47.515152, "warps per SM": 380.1,
      "grid": [{1568 + i % 9}, 1, 4], "block": [256, 1, 1], "est. achieved occupancy %": 100
    }}
  }},
  {{
    "ph": "f", "id": {corr}, "pid": 0, "tid": 7, "ts": {ts + 5:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
  {{
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5617, "tid": 5617,
    "ts": {ts + 1:.3f},
    "args": {{
      "Total Reserved": 245366784, "Total Allocated": {216081408 + i % 1024}, "Bytes": {1204224 - i % 2 * 2408448},
      "Addr": 136093868752896, "Device Id": 0, "Device Type": 1, "Ev Idx": {i}
    }}
  }},
"""


def main():
    path, megabytes = sys.argv[1], int(sys.argv[2])
    with open(path, "w") as f:
        f.write("""{
  "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9,
    "computeMinor": 0, "totalGlobalMem": 85018279936, "numSms": 132}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
  "baseTimeNanoseconds": 1751410836000000000, "displayTimeUnit": "ms",
  "traceEvents": [
""")
        i = 0
        while f.tell() < megabytes * 1_000_000:
            f.write("".join(batch(k) for k in range(i, i + 1000)))
            i += 1000
        f.write("""  {"ph": "M", "name": "process_name", "pid": 5617, "tid": 0, "args": {"name": "python3"}}
  ]
}
""")


if __name__ == "__main__":
    main()
