# SPDX-License-Identifier: Apache-2.0
"""One profile session of this process, by JAX's or PyTorch's own profiler."""

import os
import shutil
import sys
import time


class _Jax:
    def __init__(self, staging):
        import jax
        self.jax, self.staging = jax, staging
        jax.profiler.start_trace(staging)

    def annotation(self, step):
        return self.jax.profiler.StepTraceAnnotation("train", step_num=step)

    def stop(self):
        """(session name, paths of its files)."""
        self.jax.profiler.stop_trace()
        top = os.path.join(self.staging, "plugins", "profile")
        session = max(os.listdir(top))
        folder = os.path.join(top, session)
        return session, [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


class _Torch:
    def __init__(self, staging):
        import torch
        self.staging = staging
        if torch.autograd.kineto_available():
            self.profiler = torch.profiler.profile()
        else:  # PyTorch built without Kineto still has its older profiler
            self.profiler = torch.autograd.profiler.profile()
        self.record_function = torch.autograd.profiler.record_function
        self.profiler.__enter__()

    def annotation(self, step):
        return self.record_function(f"ProfilerStep#{step}")

    def stop(self):
        import socket
        self.profiler.__exit__(None, None, None)
        path = os.path.join(self.staging, f"{socket.gethostname()}.pt.trace.json")
        self.profiler.export_chrome_trace(path)
        return time.strftime("%Y_%m_%d_%H_%M_%S"), [path]


def _framework():
    if "jax" in sys.modules:
        return _Jax
    return _Torch if "torch" in sys.modules else None


class Session:
    """Begins at once; the run calls step_done() and stops it when that says so."""

    def __init__(self, run_dir, rank, world_size, steps):
        framework = _framework()
        if framework is None:
            raise RuntimeError("profile() needs JAX or PyTorch to be imported")
        self.run_dir, self.steps = run_dir, max(int(steps), 1)
        self.suffix = f".{rank}" if rank >= 0 and world_size > 1 else ""
        self.staging = os.path.join(run_dir, f".profile-{os.getpid()}")
        self.from_wall_ns = time.time_ns()
        self.step_from = self.step_to = -1
        os.makedirs(self.staging, exist_ok=True)
        self.profiler = framework(self.staging)

    def annotation(self, step):
        return self.profiler.annotation(step)

    def step_done(self, step):
        self.step_from = step if self.step_from < 0 else self.step_from
        self.step_to = step
        self.steps -= 1
        return self.steps <= 0

    def stop(self):
        """Moves the files into the run's session folder; what the SESSION record says."""
        session, paths = self.profiler.stop()
        folder = os.path.join(self.run_dir, "plugins", "profile", session)
        os.makedirs(folder, exist_ok=True)
        names = []
        for path in paths:
            name = os.path.basename(path)
            for ending in (".xplane.pb", ".trace.json.gz", ".pt.trace.json"):
                if self.suffix and name.endswith(ending):
                    name = name[:-len(ending)] + self.suffix + ending
                    break
            os.replace(path, os.path.join(folder, name))
            names.append(name)
        shutil.rmtree(self.staging, ignore_errors=True)
        return {"session": session, "kind": "programmatic", "files": names, "from_wall_ns": self.from_wall_ns,
                "to_wall_ns": time.time_ns(), "step_from": self.step_from, "step_to": self.step_to}
