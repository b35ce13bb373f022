# SPDX-License-Identifier: Apache-2.0
"""Profiles on versitygw, which checks signatures with code of its own: objects, a log folder, keys with every kind of
letter, and what it refuses."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from s3_fake import request  # noqa: E402

TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build" / "tacho"))
GOLDEN = (ROOT / "tests/golden/compat/index-2/host-0.xplane.pb").read_bytes()
PADDING = b"\xa2\x06\x80\x80\x40" + os.urandom(1 << 20)  # an unknown field of 1 MiB
KEYS = ["plain.xplane.pb", "a b+c%41&d=e,f;g:@$!*'()/h.xplane.pb", "é/日本語/h.xplane.pb", "a//b.xplane.pb",
        "~._-/x.xplane.pb"]


@pytest.fixture
def s3(peer, tmp_path):
    told = peer("s3")
    lines = pathlib.Path(tmp_path / "peer-s3" / "env").read_text().split()
    told |= dict(line.split("=", 1) for line in lines if line.startswith("AWS_"))
    keys = {"key": told["AWS_ACCESS_KEY_ID"], "secret": told["AWS_SECRET_ACCESS_KEY"], "region": told["AWS_REGION"]}
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TACHO_", "AWS_", "XDG_"))}
    env |= {k: v for k, v in told.items() if k.startswith("AWS_")}
    env |= {"TACHO_CACHE": str(tmp_path / "cache"), "TACHO_DATA": str(tmp_path / "data"),
            "AWS_ENDPOINT_URL": told["PEER_S3_URL"]}

    def put(key, body):
        request(told["PEER_S3_URL"], "PUT", f"/bucket/{key}", body, **keys)

    request(told["PEER_S3_URL"], "PUT", "/bucket", **keys)
    return put, env


def run(env, *words, **more):
    return subprocess.run([TACHO, *words], env=env | more, capture_output=True, text=True, timeout=120)


def summary(env, path):
    done = run(env, "tool", "summary", path, "--json")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_every_kind(s3, tmp_path, key):
    put, env = s3
    try:
        put(key, GOLDEN)
    except OSError as e:
        pytest.skip(f"the server does not take such a key: {e}")
    here = tmp_path / key.rpartition("/")[2]
    here.write_bytes(GOLDEN)
    assert summary(env, f"s3://bucket/{key}") == summary(env, str(here))
    if "//" not in key:
        assert summary(env, "s3://bucket/") == summary(env, str(here))


def test_an_object_of_many_ranges(s3, tmp_path):
    put, env = s3
    body = GOLDEN + PADDING * 50
    put("big.xplane.pb", body)
    first = summary(env, "s3://bucket/big.xplane.pb")
    kept = [p for p in (tmp_path / "cache/s3").rglob("*.pb")]
    assert [p.read_bytes() == body for p in kept] == [True]
    before = kept[0].stat()
    assert summary(env, "s3://bucket/big.xplane.pb") == first
    assert kept[0].stat().st_ctime_ns == before.st_ctime_ns
    body = GOLDEN + PADDING * 40
    put("big.xplane.pb", body)
    summary(env, "s3://bucket/big.xplane.pb")
    assert body in [p.read_bytes() for p in (tmp_path / "cache/s3").rglob("*.pb")]


def test_a_log_folder_of_more_than_a_page(s3):
    put, env = s3
    root = "logs/run/plugins/profile"
    for i in range(1010):
        put(f"logs/run/checkpoints/{i}", b"x")
    for host in ("h0", "h1"):
        put(f"{root}/2026_02_01_00_00_00/{host}.xplane.pb", GOLDEN)
    put(f"{root}/2025_12_31_00_00_00/old.xplane.pb", GOLDEN)
    for address in ("s3://bucket", "s3://bucket/logs/run/", f"s3://bucket/{root}/2026_02_01_00_00_00"):
        assert json.loads(summary(env, address))["hosts"] == ["h0", "h1"]


@pytest.mark.parametrize(("more", "status", "words"), [
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, 5, "the secret key is not that of the access key"),
    ({"AWS_ACCESS_KEY_ID": "wrong"}, 5, "does not know the access key"),
    ({"AWS_ACCESS_KEY_ID": ""}, 1, "access is denied"),
    ({"AWS_REGION": "eu-west-1"}, 2, "the bucket is in region 'us-east-1', not 'eu-west-1'")])
def test_what_it_refuses(s3, more, status, words):
    put, env = s3
    put("h.xplane.pb", GOLDEN)
    done = run(env, "tool", "summary", "s3://bucket/h.xplane.pb", **more)
    assert done.returncode == status and words in done.stderr


@pytest.mark.parametrize(("address", "words"), [("s3://bucket/none", "there is no such object"),
                                                ("s3://nobucket/none", "there is no such bucket")])
def test_what_is_not_there(s3, address, words):
    put, env = s3
    done = run(env, "tool", "summary", address)
    assert done.returncode == 3 and words in done.stderr
