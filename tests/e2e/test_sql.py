# SPDX-License-Identifier: Apache-2.0
"""tacho sql: its sums against an independent decoder and the tools, and what it refuses."""
import collections
import json
import os
import pathlib
import subprocess

import export_readers as readers
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACHO = os.environ.get("TACHO_BIN", str(ROOT / "build/tacho"))
SHARED = pathlib.Path(os.environ.get("TACHO_SHARED", str(ROOT.parent / "shared")))
DATA = SHARED / "data/xspace"


def tacho(*args, **env):
    return subprocess.run([TACHO, *map(str, args)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})


def sql(path, query, *args):
    done = tacho("sql", path, query, "--json", *args)
    assert done.returncode == 0, (query, done.stderr)
    return json.loads(done.stdout)["rows"]


def refused(path, query, *args):
    done = tacho("sql", path, query, *args)
    assert done.returncode != 0 and done.stdout == "", query
    return done.returncode, done.stderr.splitlines()[0]


def table(document, name):
    return next(t for t in document.get("tables", [document]) if t["table"] == name)


def plain(rows):
    """SQLite has no booleans; op_profile's text shows its tree by blanks before names."""
    return [[int(c) if isinstance(c, bool) else c.strip() if isinstance(c, str) else c for c in row] for row in rows]


def profiles():
    found = sorted(DATA.rglob("*.pb")) if SHARED.is_dir() else []
    return [p for p in found if "damaged" not in p.name]


@pytest.mark.skipif(not profiles(), reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("path", profiles(), ids=lambda p: "/".join(p.parts[-5:]))
def test_sums_of_the_trace_are_those_of_another_decoder(path):
    want = collections.defaultdict(lambda: [0, 0])
    for plane, line, name, _, dur in readers.truth_slices(path.read_bytes()):
        want[plane, name][0] += 1
        want[plane, name][1] += dur
    got = sql(path, "SELECT plane, name, count(*), sum(dur_ps) FROM trace GROUP BY plane, name")
    assert {(p, n): [c, d] for p, n, c, d in got} == dict(want)
    summary = json.loads(tacho("tool", "summary", path, "--json").stdout)
    assert sql(path, "SELECT count(*) FROM trace") == [[summary["events"]]]
    assert sql(path, "SELECT value FROM summary_values WHERE name = 'events'") == [[summary["events"]]]


@pytest.mark.skipif(not profiles(), reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("name", ["gpu_h100_2", "tpu_v6e_2core", "cpu_two_hosts"])
def test_tables_of_tools_are_the_tools_own(name):
    path = DATA / name
    for tool in ("hlo_stats", "op_profile", "overview_page"):
        document = json.loads(tacho("tool", tool, path, "--json").stdout)
        for want in document.get("tables", [document]):
            if not want["columns"]:
                continue
            got = sql(path, f"SELECT * FROM {tool}_{want['table']}")
            assert plain(got) == plain(want["rows"]), tool
    assert sql(path, "SELECT * FROM ops") == sql(path, "SELECT * FROM hlo_stats")
    want = table(json.loads(tacho("tool", "op_profile", path, "group_by=category", "--json").stdout), "op_profile")
    assert plain(sql(path, "SELECT * FROM op_profile WHERE in_group_by = 'category'")) == plain(want["rows"])
    steps = json.loads(tacho("tool", "summary", path, "--json").stdout)["steps"]
    assert sql(path, "SELECT DISTINCT step FROM steps ORDER BY step") == [[s] for s in steps]


@pytest.mark.skipif(not profiles(), reason="the shared data is not there (TACHO_SHARED)")
@pytest.mark.parametrize("name", ["gpu_a100_2hosts", "tpu_v6e_2core", "cpu_two_hosts"])
def test_what_is_narrowed_early_is_what_sqlite_would_keep(name):
    """A plus before a column keeps SQLite from handing the condition to the table."""
    path = DATA / name
    (least, most, host, plane, line), = sql(
        path, "SELECT min(start_ps), max(start_ps), max(host), max(plane), min(line) FROM trace")
    middle, quarter = (least + most) // 2, least + (most - least) // 4
    for condition in (f"host = '{host}'", f"plane = '{plane}'", f"line = '{line}'", f"line = '{line.upper()}x'",
                      f"start_ps >= {middle}", f"start_ps < {middle}", f"start_ps > {quarter}.5", "line_id = 2",
                      f"start_ps BETWEEN {quarter} AND {middle}", "start_ps > 'text'", "host = 5", "start_ps >= NULL",
                      f"host = '{host}' AND line = '{line}' AND start_ps > {quarter} AND start_ps <= {middle}",
                      f"line = '{line.swapcase()}' COLLATE NOCASE", f"start_ps < {most} AND plane < '{plane}'"):
        slow = condition
        for column in ("host", "plane", "line_id", "line", "start_ps"):
            slow = " ".join("+" + w if w == column else w for w in slow.split(" "))
        count = "SELECT count(*), sum(dur_ps), sum(start_ps % 1000), min(name) FROM trace WHERE "
        assert sql(path, count + condition) == sql(path, count + slow), condition


@pytest.mark.skipif(not profiles(), reason="the shared data is not there (TACHO_SHARED)")
def test_stacks_add_up_to_busy_time():
    path = DATA / "tpu_v6e_2core"
    busy = sql(path, "SELECT host, plane, line, busy_ps FROM summary_lines WHERE busy_ps > 0")
    assert busy == sql(path, "SELECT host, plane, line, sum(self_ps) FROM stacks GROUP BY 1, 2, 3 "
                             "HAVING sum(self_ps) > 0 ORDER BY min(rowid)")


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "host-0.xplane.pb"
    path.write_bytes(readers.xspace_plane(b"/host:CPU", {
        b"main": (1_000, [(b"outer", 0, 9000, {"bytes": 64}, {"flops": 7, "bytes": 1}), (b"in'ner", 1000, 2500),
                          (b"bad\xff", 20_000, 1)]),
        b"many": (1_000, [(b"tick", i * 10, 5) for i in range(3000)])}))
    return path


def test_forms_and_units(small):
    query = "SELECT name, dur_ps, dur_ps / 2.0 AS half FROM trace WHERE line = 'main' ORDER BY 2 DESC"
    text = tacho("sql", small, query)
    assert text.returncode == 0 and "9.000 ns" in text.stdout and "4\u2009500" in text.stdout
    csv = tacho("sql", small, "SELECT name, dur_ps FROM trace WHERE depth = 1", "--csv").stdout
    assert csv.replace("\r", "") == "name,dur_ps\nin'ner,2500\n"
    document = json.loads(tacho("sql", small, "SELECT NULL AS a, 2 AS b_percent WHERE 0", "--json").stdout)
    assert document["rows"] == [] and [c["unit"] for c in document["columns"]] == ["", "%"]
    assert tacho("sql", small, "SELECT 1", "--xprof").returncode == 2


def test_arguments_only_where_they_are_asked_for(small):
    columns = json.loads(tacho("sql", small, "SELECT * FROM trace", "--json").stdout)["columns"]
    assert [c["name"] for c in columns][-1] == "occurrences"
    (args,), = sql(small, "SELECT args FROM trace WHERE name = 'outer'")
    assert json.loads(args) == {"bytes": 64, "flops": 7}
    assert sql(small, "SELECT sum(json_extract(args, '$.flops')) FROM trace WHERE line = 'main'") == [[7]]


def test_own_tables(small):
    assert sql(small, "SELECT stack, self_ps, count FROM stacks WHERE line = 'main' ORDER BY 2 DESC")[:2] == [
        ["outer", 6500, 1], ["outer;in'ner", 2500, 1]]
    names = {row[0] for row in sql(small, "SELECT name FROM tables")}
    tools = {row[0] for row in json.loads(tacho("tools", "--json").stdout)["rows"]}
    assert names == tools | {"trace", "steps", "ops", "stacks", "tables"}
    assert sql(small, "SELECT count(*) FROM steps") == [[0]]
    assert sql(small, "SELECT a.name FROM trace a JOIN trace b ON a.line_id = b.line_id AND b.name = 'in''ner' "
                      "AND a.start_ps <= b.start_ps AND a.end_ps >= b.end_ps ORDER BY a.depth"
               ) == [["outer"], ["in'ner"]]


@pytest.mark.parametrize("query", [
    "ATTACH 'x.db' AS x", "DETACH main", "PRAGMA journal_mode = OFF", "CREATE TABLE x(a)", "DROP TABLE trace",
    "INSERT INTO trace(name) VALUES('x')", "DELETE FROM trace", "UPDATE trace SET name = 'x'", "VACUUM INTO 'x.db'",
    "BEGIN", "COMMIT", "CREATE VIRTUAL TABLE y USING trace", "REINDEX", "ANALYZE", "SAVEPOINT a",
    "SELECT load_extension('/tmp/x.so')", "SELECT * FROM pragma_database_list", "CREATE TEMP VIEW v AS SELECT 1",
    "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE trace", "", ";", "/* only words */", "EXPLAIN DELETE FROM trace"])
def test_only_one_select(small, query, tmp_path):
    status, line = refused(small, query)
    assert status == 2 and line.startswith("tacho: sql: "), line
    assert sorted(p.name for p in tmp_path.iterdir()) == [small.name]


@pytest.mark.parametrize("query, words", [
    ("SELECT missing FROM trace", "no such column: missing at byte 7"),
    ("SELECT * FORM trace", 'near "FORM": syntax error at byte 9'),
    ("SELECT * FROM absent", "no such table: absent"),
    ("SELECT count(*, 1) FROM trace WHERE (", "at byte"),
])
def test_errors_are_sqlites_with_their_place(small, query, words):
    status, line = refused(small, query)
    assert status == 2 and words in line, line


def test_a_tool_that_fails_says_why(small):
    status, line = refused(small, "SELECT * FROM hlo_stats WHERE in_host = 'nowhere'")
    assert status == 3 and "no host 'nowhere'" in line


BOMBS = {
    "recursion": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    "join": "SELECT count(*) FROM trace a, trace b, trace c, trace d WHERE a.dur_ps + b.dur_ps <> c.dur_ps + d.dur_ps",
    "sorter": "SELECT count(*) FROM (SELECT a.name || b.name FROM trace a, trace b, trace ORDER BY a.dur_ps * b.depth)",
}


@pytest.mark.parametrize("query", BOMBS.values(), ids=BOMBS)
def test_bombs_end_at_their_number_of_steps(small, query):
    status, line = refused(small, query, "--max-steps", "3000000")
    assert status == 4 and "steps" in line, line


@pytest.mark.parametrize("query", [
    "SELECT length(group_concat(hex(randomblob(20000)))) FROM trace",
    "SELECT hex(zeroblob(60000000))",
    "SELECT max(length(b)) FROM (SELECT randomblob(4000000) AS b FROM trace ORDER BY b)",
    "SELECT count(*) FROM (SELECT DISTINCT randomblob(400000) FROM trace)",
    "SELECT replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000)))",
])
def test_memory_bombs_are_one_error(small, query):
    status, line = refused(small, query)
    assert status == 4 and line.startswith("tacho: "), line


def test_deep_and_long_texts(small):
    assert refused(small, "SELECT " + "(" * 5000 + "1" + ")" * 5000)[0] in (2, 4)
    assert refused(small, "SELECT 1 " + " " * 70000)[0] == 4
    assert refused(small, "SELECT name FROM trace WHERE name LIKE '" + "%a" * 3000 + "'")[0] in (2, 4)
    assert refused(small, "SELECT " + " UNION SELECT ".join(["1"] * 5000))[0] in (2, 4)


def test_the_parser_dies_alone(small):
    done = tacho("sql", small, "SELECT 1", TACHO_TEST_PARSER_CRASH="1")
    assert done.returncode == 4 and "the parser died" in done.stderr
