# SPDX-License-Identifier: Apache-2.0
"""s3:// addresses as PROFILE, on a server that checks each signature by itself and misbehaves on demand: what comes
out is what the same file says when it lies here, or one line about why not."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import threading
import time

import pytest
from s3_fake import KEY, REGION, SECRET, FakeS3

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
GOLDEN = (ROOT / "tests/golden/compat/index-2/host-0.xplane.pb").read_bytes()
MIB = 1 << 20
RANGE = 16 * MIB


def padded(n_bytes, seed=0):
    """The golden XSpace, and so many bytes in a field that nobody knows (100): a profile all the same."""
    out, block = bytearray(GOLDEN), hashlib.sha256(bytes([seed])).digest() * (MIB // 32)
    while len(out) < n_bytes:
        out += b"\xa2\x06\x80\x80\x40" + block  # tag 100, length-delimited, 1 MiB
    return bytes(out)


@pytest.fixture
def s3():
    server = FakeS3()
    yield server
    server.stop()


@pytest.fixture
def env(tmp_path, s3):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TACHO_", "AWS_", "XDG_"))}
    return clean | {"TACHO_CACHE": str(tmp_path / "cache"), "TACHO_DATA": str(tmp_path / "data"),
                    "TACHO_S3_ENDPOINT": s3.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                    "AWS_REGION": REGION}


def run(env, *words, **more):
    return subprocess.run([TACHO, *words], env=env | more, capture_output=True, text=True, timeout=120)


def good(env, *words, **more):
    done = run(env, *words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ranges(s3):
    return [r for method, _, r in s3.log if method == "GET" and r and r != "bytes=0-0"]


def cached(tmp_path, pattern="*/*"):
    return sorted(p for p in (tmp_path / "cache" / "s3").glob(pattern) if p.name != ".lock" and p.is_file())


def local(tmp_path, body, name="host-0.xplane.pb"):
    path = tmp_path / "here" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    return str(path)


def test_every_command_says_what_it_says_of_the_file(tmp_path, s3, env):
    key = "a b/é+%41&=?#/host-0.xplane.pb"
    s3.put("bucket", key, GOLDEN)
    here, there = local(tmp_path, GOLDEN), f"s3://bucket/{key}"
    for words in (["tool", "summary", None, "--json"], ["tool", "trace_viewer", None, "--json"],
                  ["sql", None, "SELECT count(*) FROM trace", "--json"], ["report", None, "--json"],
                  ["convert", None, "-", "--to", "chrome"]):
        said = [good(env, *[path if w is None else w for w in words]) for path in (here, there)]
        assert said[0] == said[1] != "", words
    assert good(env, "why", there, "--json").replace(there, here) == good(env, "why", here, "--json")
    assert good(env, "sessions", "import", there, "--name", "s1") == "imported~s1\n"
    kept = tmp_path / "data/runs/imported/plugins/profile/s1/host-0.xplane.pb"
    assert kept.read_bytes() == GOLDEN
    assert len(ranges(s3)) == 1  # it was fetched once


def test_the_second_open_is_one_question(tmp_path, s3, env):
    body = padded(3 * MIB)
    s3.put("bucket", "h.xplane.pb", body)
    first = good(env, "tool", "summary", "s3://bucket/h.xplane.pb", "--json")
    assert [m for m, _, _ in s3.log] == ["HEAD", "GET"]
    assert [p.read_bytes() for p in cached(tmp_path)] == [body]
    assert cached(tmp_path)[0].stat().st_mtime == s3.modified["bucket", "h.xplane.pb"]
    assert len(list((tmp_path / "cache").glob("*.tacho"))) == 1
    s3.log.clear()
    assert good(env, "tool", "summary", "s3://bucket/h.xplane.pb", "--json") == first
    assert s3.log == [("HEAD", "/bucket/h.xplane.pb", None)]


def test_a_prefix_is_the_newest_session_below_it(tmp_path, s3, env):
    s3.page = 2
    root = "logs/exp 1/plugins/profile/"
    s3.put("bucket", root + "2026_02_01_00_00_00/h0.xplane.pb", GOLDEN, modified=1_000_000_000)
    s3.put("bucket", root + "2026_02_01_00_00_00/h1.xplane.pb", GOLDEN + b"\xa2\x06\x00", modified=1_000_000_000)
    s3.put("bucket", root + "2026_02_01_00_00_00/h0.trace.json.gz", b"the same as JSON")
    s3.put("bucket", root + "2026_02_01_00_00_00/report.json", b"{}")
    s3.put("bucket", root + "2025_12_31_00_00_00/old.xplane.pb", GOLDEN, modified=1_769_000_000)
    s3.put("bucket", "logs/exp 1/checkpoints/1/weights", b"x" * 1000)
    s3.put("bucket", "logs/exp 1/x.json", b"{}")
    for name in ("h0", "h1"):
        local(tmp_path, GOLDEN, f"{name}.xplane.pb")
    expected = good(env, "tool", "summary", str(tmp_path / "here"), "--json")
    assert json.loads(expected)["hosts"] == ["h0", "h1"]
    for address in (f"s3://bucket/{root}2026_02_01_00_00_00/", "s3://bucket/logs/exp 1/plugins/",
                    f"s3://bucket/{root}2026_02_01_00_00_00"):
        assert good(env, "tool", "summary", address, "--json") == expected, address
    assert sorted(p.name for p in cached(tmp_path)) == ["h0.xplane.pb", "h1.xplane.pb"]  # nothing else was fetched
    assert len(ranges(s3)) == 2
    s3.log.clear()
    assert good(env, "tool", "summary", "s3://bucket/logs/exp 1/plugins/", "--json") == expected
    assert {m for m, _, _ in s3.log} == {"GET"} and ranges(s3) == []
    # one more host of it: only that one is fetched
    s3.put("bucket", root + "2026_02_01_00_00_00/h2.xplane.pb", GOLDEN)
    said = json.loads(good(env, "tool", "summary", "s3://bucket/logs/exp 1/plugins/", "--json"))
    assert said["hosts"] == ["h0", "h1", "h2"] and len(ranges(s3)) == 1


def test_a_prefix_without_xspaces_gives_its_traces(tmp_path, s3, env):
    trace = json.dumps({"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}).encode()
    s3.put("bucket", "t/rank0.json", trace)
    s3.put("bucket", "t/report.json", b"{}")
    assert json.loads(good(env, "tool", "summary", "s3://bucket/t/", "--json"))["events"] == 1


def test_what_may_pass_is_tried_again(tmp_path, s3, env):
    body = padded(40 * MIB)
    s3.put("bucket", "h.xplane.pb", body)
    seen, lock = {}, threading.Lock()

    def hook(handler, op, key):
        span = handler.headers.get("Range")
        with lock:
            seen[op, span] = n = seen.get((op, span), 0) + 1
        if n == 1 and op == "head":
            handler.error(503, "SlowDown")
            return True
        if n > 1 or op != "get":
            return False
        start, end = (int(x) for x in span.removeprefix("bytes=").split("-"))
        if start == 0:
            handler.error(500, "InternalError")
        elif start == RANGE:  # breaks off
            handler.close_connection = True
            handler.send_response(206)
            for name, value in [*handler.object_headers("bucket", key), ("Content-Length", str(end - start + 1)),
                                ("Content-Range", f"bytes {start}-{end}/{len(body)}")]:
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(b"\0" * 5000)
        else:  # says that it ends where it does not
            short = b"\0" * 100
            handler.answer(206, short, [*handler.object_headers("bucket", key),
                                        ("Content-Range", f"bytes {start}-{end}/{len(body)}")])
        return True

    s3.hook = hook
    assert good(env, "tool", "summary", "s3://bucket/h.xplane.pb", "--json") == \
        good(env, "tool", "summary", local(tmp_path, body, "h.xplane.pb"), "--json")
    assert cached(tmp_path)[0].read_bytes() == body
    assert len(ranges(s3)) == 6 and len(set(ranges(s3))) == 3


def test_a_stalled_range_is_asked_again(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", GOLDEN)
    stalled, release = [], threading.Event()

    def hook(handler, op, key):
        if op == "get" and not stalled:
            stalled.append(key)
            release.wait(30)
            return True
        return False

    s3.hook = hook
    begun = time.monotonic()
    assert good(env, "tool", "summary", "s3://bucket/h.xplane.pb", TACHO_S3_TIMEOUT="2s")
    assert stalled and time.monotonic() - begun < 25
    release.set()


def wait_for(what, seconds=30):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def parts(tmp_path):
    return list((tmp_path / "cache/s3").glob("*/*.part"))


def kill_in_the_middle(tmp_path, s3, env, n_done):
    """Ends a fetch by SIGKILL once n_done ranges are there."""
    release, done = threading.Event(), []

    def hook(handler, op, key):
        if op != "get":
            return False
        start = int(handler.headers["Range"].removeprefix("bytes=").split("-")[0])
        if start // RANGE < n_done:
            return False
        release.wait(30)
        return True

    s3.hook = hook
    child = subprocess.Popen([TACHO, "tool", "summary", "s3://bucket/h.xplane.pb"], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def count():
        done[:] = [p.read_bytes()[152:] for p in (tmp_path / "cache/s3").glob("*/*.part-map")]
        return done and sum(done[0][i] for i in range(0, len(done[0]), 8)) == n_done

    try:
        wait_for(count)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
        release.set()
    s3.hook = lambda *_: False
    s3.log.clear()


def test_a_killed_fetch_goes_on_where_it_was(tmp_path, s3, env):
    body = padded(70 * MIB)
    s3.put("bucket", "h.xplane.pb", body)
    kill_in_the_middle(tmp_path, s3, env, 3)
    assert len(parts(tmp_path)) == 1 and [p.suffix for p in cached(tmp_path)] == [".part", ".part-map"]
    good(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert sorted(int(r.removeprefix("bytes=").split("-")[0]) // RANGE for r in ranges(s3)) == [3, 4]
    assert [p.read_bytes() for p in cached(tmp_path)] == [body]


def test_a_part_that_was_damaged_is_fetched_again(tmp_path, s3, env):
    body = padded(70 * MIB)
    s3.put("bucket", "h.xplane.pb", body)
    kill_in_the_middle(tmp_path, s3, env, 3)
    with parts(tmp_path)[0].open("r+b") as part:
        part.seek(RANGE + 12345)
        part.write(b"\0\0\0\0\0\0\0\0")
    good(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert sorted(int(r.removeprefix("bytes=").split("-")[0]) // RANGE for r in ranges(s3)) == [1, 3, 4]
    assert [p.read_bytes() for p in cached(tmp_path)] == [body]


def test_parts_of_another_object_are_not_gone_on_with(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", padded(70 * MIB))
    kill_in_the_middle(tmp_path, s3, env, 3)
    body = padded(70 * MIB, seed=1)
    s3.put("bucket", "h.xplane.pb", body)
    good(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert len(ranges(s3)) == 5
    assert [p.read_bytes() for p in cached(tmp_path) if p.suffix == ".pb"] == [body]


def test_an_object_replaced_while_it_is_read(tmp_path, s3, env):
    old, new = padded(40 * MIB), padded(50 * MIB, seed=1)
    s3.put("bucket", "h.xplane.pb", old)
    lock, answered = threading.Lock(), []

    def hook(handler, op, key):
        if op == "get":
            with lock:  # after the first range
                if answered:
                    s3.put("bucket", key, new)
                else:
                    answered.append(handler.headers["Range"])
                    handler.object("bucket", key)
                    return True
        return False

    s3.hook = hook
    good(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert [p.read_bytes() for p in cached(tmp_path)] == [new]


def test_an_object_that_never_stays_the_same(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", padded(2 * MIB))

    def hook(handler, op, key):
        if op == "get":
            s3.put("bucket", key, padded(2 * MIB, seed=len(s3.log)))
        return False

    s3.hook = hook
    done = run(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert done.returncode == 1
    assert done.stderr == "tacho: cannot read 's3://bucket/h.xplane.pb': the object has changed\n"
    assert cached(tmp_path) == []


def test_another_range_than_asked_for_is_not_taken(tmp_path, s3, env):
    body = padded(2 * MIB)
    s3.put("bucket", "h.xplane.pb", body)

    def hook(handler, op, key):
        if op == "get":
            handler.answer(206, body[1:] + b"\0", [*handler.object_headers("bucket", key),
                                                   ("Content-Range", f"bytes 1-{len(body)}/{len(body) + 1}")])
        return op == "get"

    s3.hook = hook
    done = run(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert done.returncode == 4 and "answers with another range than 'bytes 0-" in done.stderr
    assert [p.suffix for p in cached(tmp_path)] == [".part", ".part-map"]


REFUSED = [
    ({"AWS_SECRET_ACCESS_KEY": "wrong-secret-77"}, 5, "the secret key is not that of the access key"),
    ({"AWS_ACCESS_KEY_ID": "wrong-key-77"}, 5, "does not know the access key"),
    ({"AWS_ACCESS_KEY_ID": ""}, 1, "access is denied"),
    ({"AWS_REGION": "us-east-1"}, 2, f"the bucket is in region '{REGION}', not 'us-east-1'"),
    ({"AWS_SESSION_TOKEN": "wrong-token-77"}, 5, "the session token is not valid"),
    ({"TACHO_S3_ENDPOINT": "http://127.0.0.1:1"}, 5, "cannot reach"),
    ({"TACHO_S3_ENDPOINT": "http://user:wrong-secret-77@127.0.0.1"}, 2, "the S3 endpoint is no address"),
    ({"AWS_SECRET_ACCESS_KEY": ""}, 2, "an S3 access key is set, and no secret key"),
]


@pytest.mark.parametrize(("more", "status", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_what_is_refused_is_one_line_without_a_secret(s3, env, more, status, words):
    s3.put("bucket", "h.xplane.pb", GOLDEN)
    for level in ("info", "debug"):
        done = run(env, "tool", "summary", "s3://bucket/h.xplane.pb", "--json", TACHO_LOG_LEVEL=level, **more)
        assert done.returncode == status, done.stderr
        assert words in done.stderr and len([x for x in done.stderr.splitlines() if x.startswith("tacho: ")]) == 1
        assert words in json.loads(done.stdout)["error"]["message"]
        for secret in (SECRET, "wrong-secret-77", "wrong-token-77", "Signature="):
            assert secret not in done.stdout + done.stderr


@pytest.mark.parametrize(("address", "words"), [
    ("s3://bucket/none.xplane.pb", "there is no such object, and nothing below it"),
    ("s3://elsewhere/h.xplane.pb", "there is no such bucket"), ("s3://bucket/c", "no profile among its 1 objects")])
def test_what_is_not_there(s3, env, address, words):
    s3.put("bucket", "c/checkpoint", b"x")
    done = run(env, "tool", "summary", address)
    assert done.returncode == 3 and words in done.stderr


def test_no_address(env):
    done = run(env, "tool", "summary", "s3://b")
    assert done.returncode == 2 and "is no address of S3" in done.stderr


def test_errors_name_the_address(s3, env):
    s3.put("bucket", "h.xplane.pb", GOLDEN[:100] + b"\xff" * 50)
    done = run(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    assert done.returncode == 4 and done.stderr.startswith("tacho: cannot open 's3://bucket/h.xplane.pb': ")


def test_a_server_that_is_none_of_s3(s3, env):
    def hook(handler, op, key):
        handler.answer(200, b"<html>welcome</html>")
        return True

    s3.hook = hook
    for address in ("s3://bucket/h.xplane.pb", "s3://bucket/x/"):
        done = run(env, "tool", "summary", address)
        assert done.returncode == 4 and "S3" in done.stderr, done.stderr


def test_temporary_keys_and_none(tmp_path, env):
    for server, more in ((FakeS3(session_token="the/token=="), {"AWS_SESSION_TOKEN": "the/token=="}),
                         (FakeS3(anonymous=True), {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})):
        server.put("bucket", "h.xplane.pb", GOLDEN)
        assert good(env, "tool", "summary", "s3://bucket/h.xplane.pb", TACHO_S3_ENDPOINT=server.url, **more)
        server.stop()


def test_settings_of_our_own_come_before_amazons(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", GOLDEN)
    config = tmp_path / "config"
    config.write_text(f"s3_endpoint = {s3.url}/\ns3_region = {REGION}\ns3_access_key = {KEY}\n"
                      f"s3_secret_key = {SECRET}\n")
    del env["TACHO_S3_ENDPOINT"]
    env |= {"TACHO_CONFIG": str(config), "AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other",
            "AWS_SESSION_TOKEN": "other", "AWS_REGION": "other", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    assert good(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    for output in ([], ["--json"]):
        said = good(env, "doctor", *output)
        assert SECRET not in said and KEY not in said and "s3_secret_key" in said
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        other = {k: v for k, v in env.items() if k not in ("TACHO_CONFIG", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL")}
        assert good(other, "tool", "summary", "s3://bucket/h.xplane.pb", AWS_ACCESS_KEY_ID=KEY,
                    AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION=REGION, **{name: s3.url})


def test_the_cache_keeps_what_was_used_last(tmp_path, s3, env):
    for i in range(3):
        s3.put("bucket", f"h{i}.xplane.pb", padded(4 * MIB, seed=i))
    env["TACHO_S3_CACHE"] = "10MiB"
    for i in (0, 1, 0, 2):  # h1 was used longest ago
        good(env, "tool", "summary", f"s3://bucket/h{i}.xplane.pb")
        time.sleep(0.02)
    assert sorted(p.name for p in cached(tmp_path)) == ["h0.xplane.pb", "h2.xplane.pb"]
    done = run(env, "tool", "summary", "s3://bucket/h0.xplane.pb", TACHO_S3_CACHE="3MiB")
    assert done.returncode == 4 and "do not fit into the cache: 3145728 of 3145728 are left" in done.stderr
    shutil.rmtree(tmp_path / "cache")
    good(env, "tool", "summary", "s3://bucket/h1.xplane.pb")


def test_what_another_process_reads_is_not_deleted(tmp_path, s3, env):
    bodies = {name: padded(4 * MIB, seed=i) for i, name in enumerate(("h0.xplane.pb", "h1.xplane.pb"))}
    for name, body in bodies.items():
        s3.put("bucket", name, body)
    env["TACHO_S3_CACHE"] = "5MiB"
    good(env, "tool", "summary", "s3://bucket/h0.xplane.pb")
    lock = cached(tmp_path)[0].parent / ".lock"
    held = subprocess.Popen(["flock", "--shared", lock, "cat"], stdin=subprocess.PIPE)
    try:
        wait_for(lambda: subprocess.run(["flock", "--nonblock", lock, "true"]).returncode != 0)
        good(env, "tool", "summary", "s3://bucket/h1.xplane.pb")
        assert [p.name for p in sorted(cached(tmp_path), key=lambda p: p.name)] == list(bodies)
    finally:
        held.communicate()
    s3.put("bucket", "h2.xplane.pb", padded(4 * MIB, seed=2))
    good(env, "tool", "summary", "s3://bucket/h2.xplane.pb")
    assert [p.name for p in cached(tmp_path)] == ["h2.xplane.pb"]


def test_two_at_once_fetch_once(tmp_path, s3, env):
    body = padded(20 * MIB)
    s3.put("bucket", "h.xplane.pb", body)

    def hook(handler, op, key):
        if op == "get":
            time.sleep(0.3)
        return False

    s3.hook = hook
    words = [TACHO, "tool", "summary", "s3://bucket/h.xplane.pb", "--json"]
    children = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {child.communicate(timeout=60)[0] for child in children}
    assert [child.returncode for child in children] == [0] * 4
    assert len(said) == 1 and len(ranges(s3)) == 2


@pytest.mark.parametrize("key", ["../../x.xplane.pb", "a/../../../etc/x.xplane.pb", "/.hidden.xplane.pb",
                                 "a/" + "n" * 300 + ".xplane.pb", "a/\u2028 \x1b[31m.xplane.pb"])
def test_a_key_is_never_a_path(tmp_path, s3, env, key):
    s3.put("bucket", key, GOLDEN)
    assert json.loads(good(env, "tool", "summary", f"s3://bucket/{key}", "--json"))["kind"] == "xspace"
    assert len(cached(tmp_path)) == 1
    outside = [p for p in tmp_path.rglob("*") if p.is_file() and tmp_path / "cache/s3" not in p.parents]
    assert [p for p in outside if p.name.endswith("xplane.pb")] == []
    prefix = key.rpartition("/")[0]
    assert good(env, "tool", "summary", f"s3://bucket/{prefix}/" if prefix else "s3://bucket", "--json")


def test_nobody_else_may_read_what_was_fetched(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", GOLDEN)
    good(env, "tool", "summary", "s3://bucket/h.xplane.pb")
    for path in (tmp_path / "cache/s3").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_https_with_a_certificate_of_ones_own(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", GOLDEN)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    secure = FakeS3()
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    secure.put("bucket", "h.xplane.pb", GOLDEN)
    address = {"TACHO_S3_ENDPOINT": secure.url.replace("http:", "https:")}
    refused = run(env, "tool", "summary", "s3://bucket/h.xplane.pb", **address)
    assert refused.returncode == 5 and "certificate" in refused.stderr
    assert good(env, "tool", "summary", "s3://bucket/h.xplane.pb", AWS_CA_BUNDLE=str(tmp_path / "cert.pem"), **address)
    secure.stop()


def test_an_empty_object(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", b"")
    done, here = run(env, "tool", "summary", "s3://bucket/h.xplane.pb"), local(tmp_path, b"")
    assert (done.returncode, done.stderr) == (4, run(env, "tool", "summary", here).stderr.replace(
        here, "s3://bucket/h.xplane.pb"))


def test_a_listing_without_an_end(s3, env):
    s3.put("bucket", "p/x", b"")

    def hook(handler, op, key):
        if op == "list":
            handler.answer(200, b"<ListBucketResult><IsTruncated>true</IsTruncated>"
                                b"<NextContinuationToken>again</NextContinuationToken></ListBucketResult>")
        return op == "list"

    s3.hook = hook
    done = run(env, "tool", "summary", "s3://bucket/p/")
    assert done.returncode == 4 and "in 2000 pages lie below" in done.stderr


def test_sizes_beyond_every_cache(s3, env):
    s3.put("bucket", "p/x", b"")

    def hook(handler, op, key):
        if op == "list":
            rows = "".join(f"<Contents><Key>p/{i}.xplane.pb</Key><ETag>{i}</ETag><Size>{1 << 63}</Size></Contents>"
                           for i in range(2))  # 0 in sum, were they summed in 64 bits
            handler.answer(200, f"<ListBucketResult>{rows}</ListBucketResult>".encode())
        return op == "list"

    s3.hook = hook
    done = run(env, "tool", "summary", "s3://bucket/p/")
    assert done.returncode == 4 and "do not fit into the cache" in done.stderr


def test_progress_on_a_terminal(tmp_path, s3, env):
    s3.put("bucket", "h.xplane.pb", padded(40 * MIB))

    def hook(handler, op, key):
        if op != "get":
            return False
        start, end = (int(x) for x in handler.headers["Range"].removeprefix("bytes=").split("-"))
        body = s3.objects["bucket"][key]
        end = min(end, len(body) - 1)
        handler.send_response(206)
        for name, value in [*handler.object_headers("bucket", key), ("Content-Length", str(end - start + 1)),
                            ("Content-Range", f"bytes {start}-{end}/{len(body)}")]:
            handler.send_header(name, value)
        handler.end_headers()
        for at in range(start, end + 1, 2 * MIB):
            time.sleep(0.25)
            handler.wfile.write(body[at:min(at + 2 * MIB, end + 1)])
        return True

    s3.hook = hook
    ours, theirs = os.openpty()
    child = subprocess.Popen([TACHO, "tool", "summary", "s3://bucket/h.xplane.pb", "--json"], env=env,
                             stdout=subprocess.PIPE, stderr=theirs)
    assert json.loads(child.communicate(timeout=60)[0])["kind"] == "xspace"
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert "fetching:" in said and "million bytes/s" in said and said.endswith("\r\x1b[K"), said


def test_flat_entries_are_a_run_from_there_too(tmp_path, s3, env):
    entries = ROOT.parent / "shared/data/goodput"
    found = sorted(entries.rglob("*.jsonl")) if entries.exists() else []
    if not found:
        pytest.skip("no entries beside this clone")
    s3.put("bucket", "e.jsonl", found[0].read_bytes())
    assert good(env, "goodput", "s3://bucket/e.jsonl", "--json").replace("s3://bucket/", "") != ""
