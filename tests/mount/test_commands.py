"""The shapes of what commands print (interface.md): every key is there, with the right kind of value."""
import hashlib
import json
import os
import re

import pytest

import harness
from harness import fails, hfd, hfd_json, noise, safetensors_bytes

pytestmark = pytest.mark.asan
HEX64 = re.compile(r"[0-9a-f]{64}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def has(document, shape, where="document"):
    """Each key of `shape` is in `document` with a value of that type, pattern or nested shape."""
    for key, kind in shape.items():
        assert key in document, f"{where} lacks {key!r}: {sorted(document)}"
        value = document[key]
        if isinstance(kind, dict):
            has(value, kind, f"{where}.{key}")
        elif isinstance(kind, re.Pattern):
            assert isinstance(value, str) and kind.fullmatch(value), f"{where}.{key} = {value!r}"
        elif isinstance(kind, list):
            assert isinstance(value, list), f"{where}.{key} = {value!r}"
            for i, entry in enumerate(value):
                if kind:
                    has(entry, kind[0], f"{where}.{key}[{i}]")
        else:
            good = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            assert good, f"{where}.{key} = {value!r}, wanted {kind.__name__}"


STATUS = {
    "mount_point": str, "source": str, "bucket": str, "ref": str, "version": HEX64, "seq": int, "read_only": bool,
    "pid": int, "started": TIME,
    "cache": {"dir": str, "bytes": int, "limit_bytes": int},
    "staging": {"dir": str, "bytes": int, "files": [{"path": str, "bytes": int, "state": str}]},
    "rss_bytes": int, "last_publish": {"version": HEX64, "time": TIME}, "errors": [], "conflicts": [],
    "counters": {name: int for name in ("fuse_reads", "remote_requests", "remote_bytes_in", "remote_bytes_out",
                                        "blocks_rebuilt", "blocks_bad", "blocks_healed")},
}


def test_status(mounts):
    writer = mounts.mount()
    (writer / "a").write_bytes(noise(100_000, 1))
    version = writer.commit()["version"]
    (writer / "b").write_bytes(b"12345")
    document = hfd_json("status", writer.point)
    (status,) = document["mounts"]
    has(status, STATUS)
    for key in ("base", "base_revision"):
        assert key in status
    assert status["mount_point"] == str(writer.point) and status["version"] == version and status["ref"] == "main"
    assert status["seq"] == 1 and status["read_only"] is False and status["rss_bytes"] > 1 << 20
    assert os.path.isdir(status["cache"]["dir"]) and os.path.isdir(status["staging"]["dir"])
    assert status["cache"]["dir"].startswith(str(writer.cache_dir / "cache"))
    assert status["staging"]["dir"].startswith(str(writer.cache_dir / "staging"))
    (staged,) = status["staging"]["files"]
    assert staged["path"] == "b" and staged["bytes"] == 5 and staged["state"] == "quiet" and "reason" in staged
    assert status["staging"]["bytes"] >= 5
    assert status["counters"]["remote_bytes_out"] > 50_000
    assert str(writer.point) in hfd("status", writer.point).out
    every = hfd_json("status")["mounts"]
    assert str(writer.point) in [m["mount_point"] for m in every]


def test_status_of_a_fresh_mount_of_an_empty_bucket(mounts):
    writer = mounts.mount()
    status = writer.status()
    assert status["seq"] == 0 and status["read_only"] is False
    assert os.listdir(writer.point) == []
    assert status["staging"]["files"] == []


def test_commit(mounts):
    writer = mounts.mount()
    data = noise(500_000, 3)
    (writer / "a").write_bytes(data)
    row = hfd_json("commit", writer.point, "-m", "first\nversion")
    has(row, {"version": HEX64, "seq": int, "ref": str, "files": int, "full_bytes": int, "stored_bytes": int, "meta_bytes": int})
    assert isinstance(row["seconds"], (int, float)) and "parent" in row
    assert row["files"] == 1 and row["full_bytes"] == len(data) and row["seq"] == 1 and row["ref"] == "main"
    stored = sum(p.stat().st_size for kind in ("deltas", "blobs") for p in harness.objects(mounts.bucket, kind))
    assert row["stored_bytes"] == stored
    assert row["meta_bytes"] >= sum(p.stat().st_size for p in harness.objects(mounts.bucket, "versions"))
    (writer / "a").write_bytes(data[:-5])
    plain = hfd("commit", writer.point)
    assert HEX64.fullmatch(plain.out.strip()) and plain.out.count("\n") == 1, "the id alone"
    second = hfd_json("log", mounts.bucket)[0]
    assert second["parent"] == row["version"]


def test_the_bucket_has_the_native_layout(one_version):
    bucket, _, version = one_version
    root = bucket / "hfdelta"
    assert (root / "format").read_text().count("\n") == 1
    assert (root / "refs" / "main" / "0000000001").read_text().strip() == version
    manifest = (root / "versions" / f"{version}.json").read_bytes()
    assert hashlib.sha256(manifest).hexdigest() == version
    json.loads(manifest)
    for kind, suffix in (("deltas", ".hfd"), ("blobs", "")):
        for path in harness.objects(bucket, kind):
            assert path.name == harness.sha256(path) + suffix
    assert not [p for p in root.rglob("*") if "tmp" in p.name], "no temporary file is left"


def test_log(mounts):
    writer = mounts.mount()
    ids = []
    for i in range(3):
        (writer / "model.safetensors").write_bytes(
            safetensors_bytes({"w": ("BF16", [50_000], noise(99_990, 1) + noise(10, i + 5))}))
        ids.append(writer.commit("-m", f"message {i}")["version"])
    for place in (writer.point, mounts.bucket):
        log = hfd_json("log", place)
        assert [entry["id"] for entry in log] == list(reversed(ids))
        for entry in log:
            has(entry, {"id": HEX64, "seq": int, "ref": str, "time": TIME, "message": str, "files": int, "full_bytes": int,
                        "stored_bytes": int, "meta_bytes": int, "changed_elements": int, "total_elements": int, "tags": []})
            assert "parent" in entry and "foreign_version" in entry and "bad" in entry
        assert [entry["message"] for entry in log] == ["message 2", "message 1", "message 0"]
        assert [entry["seq"] for entry in log] == [3, 2, 1]
        assert log[0]["total_elements"] == 50_000 and 1 <= log[0]["changed_elements"] <= 5
        assert log[-1]["parent"] in (None, "", 0) and log[0]["parent"] == ids[1]
        assert len(hfd_json("log", place, "-n", "2")) == 2
    text = hfd("log", mounts.bucket).out
    assert ids[2][:8] in text and "message 0" in text


def test_diff(mounts):
    writer = mounts.mount()
    base = {"same": ("BF16", [1000], noise(2000, 1)), "changed": ("BF16", [10, 100], bytes(2000)),
            "removed": ("F32", [10], noise(40, 2)), "renamed_from": ("U8", [5000], noise(5000, 3)),
            "retyped": ("I8", [16], noise(16, 4))}
    (writer / "model.safetensors").write_bytes(safetensors_bytes(base))
    (writer / "gone.txt").write_text("x")
    a = writer.commit()["version"]
    new = {"same": base["same"], "changed": ("BF16", [10, 100], b"\1" + bytes(1997) + b"\1\1"),
           "renamed_to": base["renamed_from"], "retyped": ("F16", [8], noise(16, 4)), "added": ("F32", [3], noise(12, 6))}
    (writer / "model.safetensors").write_bytes(safetensors_bytes(new))
    os.unlink(writer / "gone.txt")
    (writer / "new.txt").write_text("y")
    b = writer.commit()["version"]
    for place in (writer.point, mounts.bucket):
        difference = hfd_json("diff", place, a[:12], "head")
        has(difference, {"a": HEX64, "b": HEX64, "files_added": [], "files_removed": [], "files_changed": [], "tensors": [{
            "path": str, "name": str, "dtype": str, "shape": [], "elements": int, "changed_elements": int, "bytes": int,
            "status": str}]})
        assert (difference["a"], difference["b"]) == (a, b)
        name_of = lambda entry: entry if isinstance(entry, str) else entry["path"]
        assert list(map(name_of, difference["files_added"])) == ["new.txt"]
        assert list(map(name_of, difference["files_removed"])) == ["gone.txt"]
        assert list(map(name_of, difference["files_changed"])) == ["model.safetensors"]
        states = {t["name"]: t["status"] for t in difference["tensors"]}
        assert states.get("same", "same") == "same"
        assert {n: s for n, s in states.items() if n not in ("same", "renamed_from")} == {
            "changed": "changed", "removed": "removed", "renamed_to": "renamed", "retyped": "retyped", "added": "added"}
        tensors = {t["name"]: t for t in difference["tensors"]}
        assert tensors["changed"]["changed_elements"] == 2 and tensors["changed"]["elements"] == 1000
        assert tensors["changed"]["shape"] == [10, 100] and tensors["changed"]["bytes"] == 2000
        assert tensors["renamed_to"]["from"] == "renamed_from"
        assert "from" in tensors["changed"]
    same = hfd_json("diff", mounts.bucket, "head", "head")
    assert same["files_changed"] == [] and same["files_added"] == []
    assert "changed" in hfd("diff", mounts.bucket, "head~1", "head").out


def test_names_of_versions(mounts):
    writer = mounts.mount()
    ids = []
    for i in range(3):
        (writer / "a").write_text(str(i))
        ids.append(writer.commit()["version"])
    hfd("tag", mounts.bucket, "release-1", ids[0])
    for name, want in {"head": 2, "head~1": 1, "head~2": 0, "v1": 0, "v3": 2, "main": 2, "release-1": 0, ids[1]: 1,
                       ids[1][:6]: 1, ids[1][:20]: 1}.items():
        out = mounts.folder / f"out-{want}-{len(name)}-{name[:4]}"
        assert hfd("pull", mounts.bucket, out, "--version", name).out.strip() == ids[want], name
        assert (out / "a").read_text() == str(want)
    for name in (ids[1][:5], "head~3", "v0", "v4", "", "HEAD"):
        fails((2, 3), "pull", mounts.bucket, mounts.folder / "none", "--version", name)


def test_tag(mounts):
    writer = mounts.mount()
    (writer / "a").write_text("1")
    first = writer.commit()["version"]
    (writer / "a").write_text("2")
    second = writer.commit()["version"]
    hfd("tag", writer.point, "good", first)
    hfd("tag", mounts.bucket, "newest")
    listed = hfd("tag", mounts.bucket, "--list").out
    assert "good" in listed and "newest" in listed and first[:8] in listed
    log = {entry["id"]: entry["tags"] for entry in hfd_json("log", mounts.bucket)}
    assert log == {first: ["good"], second: ["newest"]}
    hfd("tag", mounts.bucket, "--delete", "good")
    assert "good" not in hfd("tag", mounts.bucket, "--list").out
    fails(3, "tag", mounts.bucket, "--delete", "good", says="good")
    for bad in ("head", "12", "a//b", "a b", "../x", "é"):
        fails(2, "tag", mounts.bucket, bad)


def test_publish_and_pull(one_version, tmp_path):
    bucket, folder, first = one_version
    (folder / "model.safetensors").write_bytes(
        safetensors_bytes({"w": ("BF16", [512, 1024], noise((1 << 20) - 4, 1) + b"abcd")}))
    row = hfd_json("publish", folder, bucket, "-m", "second")
    has(row, {"version": HEX64, "parent": HEX64, "seq": int, "ref": str, "files": int, "full_bytes": int, "stored_bytes": int,
              "meta_bytes": int})
    assert row["parent"] == first and row["seq"] == 2 and row["files"] == 2
    assert row["stored_bytes"] < 70_000
    idle = hfd_json("publish", folder, bucket)  # case 70: an idle training step is a version, and nearly free
    assert idle["parent"] == row["version"] and idle["stored_bytes"] == 0 and idle["seq"] == 3
    pulled = hfd_json("pull", bucket, tmp_path / "out")
    has(pulled, {"version": HEX64, "files": [{"path": str, "bytes": int, "sha256": HEX64}]})
    assert {f["path"]: f["sha256"] for f in pulled["files"]} == harness.tree(folder) == harness.tree(tmp_path / "out")
    hfd("pull", bucket, tmp_path / "out", "--version", first)  # by id
    assert harness.sha256(tmp_path / "out" / "model.safetensors") != harness.sha256(folder / "model.safetensors")
    assert sorted(os.listdir(tmp_path / "out")) == ["config.json", "model.safetensors"], "no temporary file is left"


def test_publish_against_a_base_folder(tmp_path):
    base, folder, bucket = tmp_path / "base", tmp_path / "folder", tmp_path / "bucket"
    for place in (base, folder):
        place.mkdir()
    data = noise(1 << 20, 5)
    (base / "model.bin").write_bytes(data)
    (folder / "model.bin").write_bytes(data[:500_000] + b"!" + data[500_001:])
    row = hfd_json("publish", folder, bucket, "--base", base)
    assert row["stored_bytes"] < 20_000
    hfd("pull", bucket, tmp_path / "out")
    assert harness.tree(tmp_path / "out") == harness.tree(folder)


def test_verify(one_version):
    bucket, _, _ = one_version
    report = hfd_json("verify", bucket)
    has(report, {"ok": bool, "versions": int, "objects": int, "bytes": int, "bad": []})
    assert report["ok"] is True and report["versions"] == 1 and report["bad"] == []
    kinds = ("deltas", "blobs")
    assert report["objects"] >= sum(len(harness.objects(bucket, k)) for k in kinds) > 0
    assert report["bytes"] >= sum(p.stat().st_size for k in kinds for p in harness.objects(bucket, k))


def test_delta_commands(tmp_path):
    base = safetensors_bytes({"w": ("BF16", [300_000], noise(600_000, 1))})
    target = safetensors_bytes({"w": ("BF16", [300_000], noise(599_998, 1) + b"xy"), "b": ("U8", [4], b"abcd")})
    for name, data in (("base", base), ("target", target)):
        (tmp_path / name).write_bytes(data)
    hfd("delta", "encode", tmp_path / "base", tmp_path / "target", tmp_path / "d.hfd")
    info = hfd_json("delta", "info", tmp_path / "d.hfd")
    has(info, {"format_version": int, "target": {"bytes": int, "sha256": HEX64}, "sources": [{"bytes": int, "sha256": HEX64}],
               "block_bytes": int, "blocks": int, "modes": {m: int for m in ("same", "sparse", "dense", "raw", "zero")},
               "index_bytes": int, "payload_bytes": int, "bytes": int, "changed_elements": int})
    assert info["block_bytes"] == 256 * 1024 and info["blocks"] == -(-len(target) // info["block_bytes"])
    assert info["sources"] == [{"bytes": len(base), "sha256": hashlib.sha256(base).hexdigest()}]
    assert info["changed_elements"] >= 1
    hfd("delta", "apply", tmp_path / "base", tmp_path / "d.hfd", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == target
    assert hfd("delta", "info", tmp_path / "d.hfd").out
    for empty, full in (("base", b""), ("target", b"")):
        (tmp_path / empty).write_bytes(full)
        hfd("delta", "encode", tmp_path / "base", tmp_path / "target", tmp_path / "e.hfd")
        (tmp_path / "out").unlink(missing_ok=True)
        hfd("delta", "apply", tmp_path / "base", tmp_path / "e.hfd", tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == (tmp_path / "target").read_bytes()


def test_json_is_one_document_and_nothing_else(one_version, mounts):
    bucket, _, version = one_version
    reader = mounts.reader(source=bucket)
    for command in (["log", bucket], ["verify", bucket], ["status", reader.point], ["diff", bucket, version, "head"],
                    ["pull", bucket, mounts.folder / "o"], ["log", reader.point]):
        done = hfd(*command, "--json")
        json.loads(done.out)
        assert "\r" not in done.err and "\x1b" not in done.err + done.out, "bars only on a terminal"
