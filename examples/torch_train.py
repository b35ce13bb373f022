# SPDX-License-Identifier: Apache-2.0
"""A small transformer trained with PyTorch on the CPU: loads batches (slowly for a stretch), saves
checkpoints, crashes once and goes on from its last checkpoint when it is started again.

    tacho run --name demo -- python3 examples/torch_train.py STATE_FOLDER            crashes (planted)
    tacho run --name demo --resume -- python3 examples/torch_train.py STATE_FOLDER   finishes
"""
import os
import sys
import time

import torch
from torch import nn

import tachograph as tacho

STEPS, SAVE_EVERY, CRASH_AT, PROFILE_AT = 80, 15, 40, 60
SLOW_FROM, SLOW_TO, SLOW_S = 15, 70, 0.4
LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 2, 64, 4, 32, 16, 256


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.out = nn.Linear(WIDTH, WORDS)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, words):
        return self.out(self.layers(self.embed(words), self.mask))


def train_step(model, optimizer, words):
    optimizer.zero_grad()
    logits = model(words[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, WORDS), words[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    return float(loss)


def load_batch(step):
    if SLOW_FROM <= step < SLOW_TO:
        time.sleep(SLOW_S)  # the planted slow phase
    generator = torch.Generator().manual_seed(step)
    start = torch.randint(0, WORDS, (BATCH, 1), generator=generator)
    return (start + 3 * torch.arange(LENGTH + 1)) % WORDS


def save(path, model, optimizer, step):
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
    os.replace(path + ".new", path)


def restore(path, model, optimizer):
    if not os.path.exists(path):
        return 0
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return kept["step"]


def crash_once(marker, step):
    if step == CRASH_AT and not os.path.exists(marker):
        open(marker, "w").close()
        print(f"torch_train: planted crash at step {step}", file=sys.stderr, flush=True)
        os._exit(1)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    checkpoint, marker = os.path.join(folder, "checkpoint.pt"), os.path.join(folder, "crashed")
    run = tacho.init(config={"steps": STEPS, "batch": BATCH, "width": WIDTH, "layers": LAYERS})
    with run.record(tacho.Event.ACCELERATOR_INIT):
        torch.manual_seed(0)
    with run.record(tacho.Event.TRAINING_PREP):
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with run.record(tacho.Event.CHECKPOINT_RESTORE):
        first = restore(checkpoint, model, optimizer)
    for step in range(first, STEPS):
        crash_once(marker, step)
        with run.record(tacho.Event.DATA_LOADING, step):
            batch = load_batch(step)
        if step == PROFILE_AT:
            run.profile(steps=5)
        with run.record(tacho.Event.STEP, step):
            loss = train_step(model, optimizer, batch)
        run.log({"loss": loss}, step=step)
        if (step + 1) % SAVE_EVERY == 0:
            with run.record(tacho.Event.CHECKPOINT_SAVE, step):
                save(checkpoint, model, optimizer, step + 1)
    print(f"torch_train: done, loss {loss:.4f}")
    run.finish()


main()
