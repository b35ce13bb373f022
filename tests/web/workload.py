# SPDX-License-Identifier: Apache-2.0
"""A run for the browser tests: waits for input, saves, dies once at CRASH and goes on from its save.

    workload.py STATE_FILE CRASH STEPS STEP_SECONDS      (CRASH -1: never)
"""
import math
import os
import signal
import sys
import time

import tachograph as tacho

SAVE_EVERY = 10


def main(state, crash, steps, step_s):
    first = int(open(state).read()) if os.path.exists(state) else 0
    run = tacho.init(config={"learning_rate": 3e-4, "mesh": {"data": 2, "model": 1}}, labels={"team": "browser"})
    with run.record(tacho.Event.TRAINING_PREP):
        time.sleep(0.05)
    for step in range(first, steps):
        with run.record(tacho.Event.DATA_LOADING, step):
            time.sleep(step_s / 2 if step % 7 == 3 else step_s / 20)
        with run.record(tacho.Event.STEP, step):
            time.sleep(step_s)
            if step == crash and first == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        run.log({"loss": 2 + 6 * math.exp(-step / 20), "learning_rate": 3e-4 * (1 - step / steps)}, step=step)
        if step % SAVE_EVERY == SAVE_EVERY - 1:
            with run.record(tacho.Event.CHECKPOINT_SAVE, step):
                with open(state, "w") as f:
                    f.write(str(step + 1))
    run.finish()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
