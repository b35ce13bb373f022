# SPDX-License-Identifier: Apache-2.0
"""A small transformer trained with JAX on four CPU devices: loads batches (slowly for a stretch),
saves checkpoints, crashes once and goes on from its last checkpoint when it is started again.

    tacho run --name demo -- python3 examples/jax_train.py STATE_FOLDER            crashes (planted)
    tacho run --name demo --resume -- python3 examples/jax_train.py STATE_FOLDER   finishes
"""
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tachograph as tacho

STEPS, SAVE_EVERY, CRASH_AT, PROFILE_AT = 80, 15, 40, 60
SLOW_FROM, SLOW_TO, SLOW_S = 15, 70, 0.4
LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 2, 64, 4, 32, 16, 256


def initial(key):
    keys = jax.random.split(key, 2 + 4 * LAYERS)
    p = {"embed": jax.random.normal(keys[0], (WORDS, WIDTH)) * 0.05,
         "out": jax.random.normal(keys[1], (WIDTH, WORDS)) * 0.05}
    for i in range(LAYERS):
        for j, (name, shape) in enumerate((("qkv", (WIDTH, 3 * WIDTH)), ("proj", (WIDTH, WIDTH)),
                                           ("up", (WIDTH, 4 * WIDTH)), ("down", (4 * WIDTH, WIDTH)))):
            p[f"{name}{i}"] = jax.random.normal(keys[2 + 4 * i + j], shape) * 0.05
    return p


def normal(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def loss_of(p, words):
    x = p["embed"][words[:, :-1]]
    n, length, _ = x.shape
    mask = jnp.tril(jnp.ones((length, length), bool))
    for i in range(LAYERS):
        q, k, v = jnp.split((normal(x) @ p[f"qkv{i}"]).reshape(n, length, HEADS, -1), 3, -1)
        score = jnp.einsum("nqhd,nkhd->nhqk", q, k) / np.sqrt(WIDTH // HEADS)
        weight = jax.nn.softmax(jnp.where(mask, score, -1e9))
        x = x + jnp.einsum("nhqk,nkhd->nqhd", weight, v).reshape(n, length, WIDTH) @ p[f"proj{i}"]
        x = x + jax.nn.gelu(normal(x) @ p[f"up{i}"]) @ p[f"down{i}"]
    logits = jax.nn.log_softmax(normal(x) @ p["out"])
    return -jnp.take_along_axis(logits, words[:, 1:, None], -1).mean()


@jax.jit
def train_step(p, words):
    loss, gradient = jax.value_and_grad(loss_of)(p, words)
    return jax.tree.map(lambda w, g: w - 0.1 * g, p, gradient), loss


def load_batch(step, sharding):
    if SLOW_FROM <= step < SLOW_TO:
        time.sleep(SLOW_S)  # the planted slow phase
    rng = np.random.default_rng(step)
    start = rng.integers(0, WORDS, (BATCH, 1))
    return jax.device_put((start + 3 * np.arange(LENGTH + 1)) % WORDS, sharding)


def save(path, params, step):
    with open(path + ".new", "wb") as out:
        np.savez(out, step=step, **{k: np.asarray(v) for k, v in params.items()})
    os.replace(path + ".new", path)


def restore(path, params):
    if not os.path.exists(path):
        return params, 0
    with np.load(path) as kept:
        return {k: jnp.asarray(kept[k]) for k in params}, int(kept["step"])


def crash_once(marker, step):
    if step == CRASH_AT and not os.path.exists(marker):
        open(marker, "w").close()
        print(f"jax_train: planted crash at step {step}", file=sys.stderr, flush=True)
        os._exit(1)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    checkpoint, marker = os.path.join(folder, "checkpoint.npz"), os.path.join(folder, "crashed")
    run = tacho.init(config={"steps": STEPS, "batch": BATCH, "width": WIDTH, "layers": LAYERS})
    with run.record(tacho.Event.ACCELERATOR_INIT):
        mesh = Mesh(np.array(jax.devices()), ("data",))
    with run.record(tacho.Event.TRAINING_PREP):
        everywhere = NamedSharding(mesh, PartitionSpec())
        split = NamedSharding(mesh, PartitionSpec("data"))
        params = jax.device_put(initial(jax.random.key(0)), everywhere)
    with run.record(tacho.Event.CHECKPOINT_RESTORE):
        params, first = restore(checkpoint, params)
        params = jax.device_put(params, everywhere)
    for step in range(first, STEPS):
        crash_once(marker, step)
        with run.record(tacho.Event.DATA_LOADING, step):
            batch = load_batch(step, split)
        if step == PROFILE_AT:
            run.profile(steps=5)
        with run.record(tacho.Event.STEP, step):
            params, loss = train_step(params, batch)
            loss = float(loss)
        run.log({"loss": loss}, step=step)
        if (step + 1) % SAVE_EVERY == 0:
            with run.record(tacho.Event.CHECKPOINT_SAVE, step):
                save(checkpoint, params, step + 1)
    print(f"jax_train: done, loss {loss:.4f}")
    run.finish()


main()
