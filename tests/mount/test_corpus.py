"""The main job on a real small model: seven versions through one mount, read back bit for bit from a second one with an
empty cache; sizes of the deltas; an unmodified inference engine on the mount."""
import hashlib
import json
import mmap
import os
import subprocess

import pytest

import harness
from harness import MIB, fails, hfd, hfd_json

S40_S41_BYTES_MAX = 230_000
S24_S40_BYTES_MAX = 1_300_000


@pytest.fixture(scope="module")
def published(module_mounts, corpus):
    """All versions published by cp through one mount; {name: version id}."""
    writer = module_mounts.mount("writer")
    ids, rows = {}, {}
    for name in corpus.names:
        if name == "base":
            harness.run(["cp", "-r", f"{corpus.model}/.", writer.point], check=True)
        else:
            harness.run(["cp", corpus.weights(name), writer / "model.safetensors"], check=True)
        rows[name] = writer.commit("-m", name)
        ids[name] = rows[name]["version"]
    peak = harness.rss_peak(writer.pid)
    writer.umount()
    return module_mounts.bucket, ids, rows, peak


def test_each_commit_is_a_version_of_its_own(published, corpus):
    bucket, ids, rows, peak = published
    assert len(set(ids.values())) == len(corpus.names)
    log = hfd_json("log", bucket)
    assert [entry["id"] for entry in log] == [ids[name] for name in reversed(corpus.names)]
    assert [entry["message"] for entry in log] == list(reversed(corpus.names))
    full = sum(p.stat().st_size for p in corpus.model.iterdir())
    for older, newer in zip(corpus.names, corpus.names[1:]):
        assert rows[newer]["parent"] == ids[older]
        assert rows[newer]["full_bytes"] == full
    print({name: row["stored_bytes"] for name, row in rows.items()})
    assert peak < 512 * MIB


@pytest.mark.parametrize("way", ["preads_and_mmap", "cat"])
def test_every_version_is_right_on_a_second_mount_with_an_empty_cache(published, corpus, mounts, way):
    bucket, ids, _, _ = published
    reader = mounts.reader(way, source=bucket)
    for seed, name in enumerate(reversed(corpus.names)):
        path = reader.version_folder(ids[name]) / "model.safetensors"
        assert os.stat(path).st_size == corpus.weights(name).stat().st_size
        if way == "cat":
            assert harness.sha256_cat(path) == corpus.sha256[name], name
            continue
        with open(corpus.weights(name), "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as want:
            harness.compare_preads(path, want, 60, seed)
        assert harness.sha256_mmap(path) == corpus.sha256[name], name
    for file in corpus.model.iterdir():
        if file.name != "model.safetensors":
            assert harness.sha256(reader / file.name) == harness.sha256(file), file.name


def test_the_root_shows_the_newest_version(published, corpus, mounts):
    bucket, ids, _, _ = published
    reader = mounts.reader(source=bucket)
    assert reader.status()["version"] == ids["rl1e6_s41"]
    assert harness.sha256_cat(reader / "model.safetensors") == corpus.sha256["rl1e6_s41"]
    assert harness.sha256_mmap(reader / "model.safetensors") == corpus.sha256["rl1e6_s41"]
    assert sorted(os.listdir(reader.point)) == sorted(p.name for p in corpus.model.iterdir())


def test_the_object_from_s40_to_s41_is_small(published, corpus):
    bucket, _, _, _ = published
    path, info = harness.delta_between(bucket, corpus.sha256["rl1e6_s40"], corpus.sha256["rl1e6_s41"])
    assert info["bytes"] == path.stat().st_size
    assert info["target"]["bytes"] == corpus.weights("rl1e6_s41").stat().st_size
    assert info["index_bytes"] + info["payload_bytes"] <= info["bytes"]
    assert path.stat().st_size <= S40_S41_BYTES_MAX


def test_the_object_from_s24_to_s40_is_small_and_exact(corpus, tmp_path):
    delta, back = tmp_path / "delta", tmp_path / "back"
    encode = hfd("delta", "encode", corpus.weights("rl1e6_s24"), corpus.weights("rl1e6_s40"), delta)
    assert delta.stat().st_size <= S24_S40_BYTES_MAX
    apply = hfd("delta", "apply", corpus.weights("rl1e6_s24"), delta, back)
    assert harness.sha256(back) == corpus.sha256["rl1e6_s40"]
    assert max(encode.rss_max, apply.rss_max) < 512 * MIB


def test_a_reader_takes_the_deltas_not_the_files(published, corpus, mounts):
    """Reading all seven versions must not bring more over than the bucket holds (with some slack for small reads)."""
    bucket, ids, _, _ = published
    reader = mounts.reader(source=bucket)
    for name in corpus.names:
        assert harness.sha256(reader.version_folder(ids[name]) / "model.safetensors") == corpus.sha256[name]
    stored = harness.disk_usage(bucket / "hfdelta")
    assert reader.counters()["remote_bytes_in"] <= 1.25 * stored + 16 * MIB


def test_verify_and_pull_agree(published, corpus, tmp_path):
    bucket, ids, _, _ = published
    report = hfd_json("verify", bucket)
    assert report["ok"] is True and report["bad"] == []
    assert report["versions"] == len(corpus.names)
    pulled = hfd_json("pull", bucket, tmp_path / "out", "--version", ids["rl1e6_s24"])
    assert pulled["version"] == ids["rl1e6_s24"]
    sums = {entry["path"]: entry["sha256"] for entry in pulled["files"]}
    assert sums["model.safetensors"] == corpus.sha256["rl1e6_s24"]
    assert harness.sha256(tmp_path / "out" / "model.safetensors") == corpus.sha256["rl1e6_s24"]


def test_diff_counts_the_changed_elements(published, corpus):
    bucket, ids, _, _ = published
    difference = hfd_json("diff", bucket, ids["rl1e6_s40"], ids["rl1e6_s41"])
    assert difference["files_changed"] == ["model.safetensors"] or \
        [f.get("path") for f in difference["files_changed"]] == ["model.safetensors"]
    tensors = difference["tensors"]
    changed, elements = sum(t["changed_elements"] for t in tensors), sum(t["elements"] for t in tensors)
    assert {t["status"] for t in tensors} <= {"same", "changed"}
    assert elements == 35_663_616 or elements > 35_000_000
    assert 0.0070 < changed / elements < 0.0074, "the corpus README says 0.719 %"


ENGINE = """
import sys
from mistralrs import Architecture, CompletionRequest, Runner, Which
runner = Runner(which=Which.Plain(model_id=sys.argv[1], arch=Architecture.Qwen3))
request = CompletionRequest(model="default", prompt=sys.argv[2], max_tokens=48, temperature=0.0)
print("TEXT", repr(runner.send_completion_request(request).choices[0].text))
"""
PROMPT = "raise ValueError("


def generate(folder):
    done = subprocess.run([harness.python_of_venv(), "-c", ENGINE, str(folder), PROMPT], capture_output=True, text=True,
                          timeout=100, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    texts = [line for line in done.stdout.split("\n") if line.startswith("TEXT ")]
    assert done.returncode == 0 and texts, f"{folder}: {done.stderr[-2000:]}"
    return texts[-1]


def test_an_inference_engine_reads_two_versions_from_the_mount(published, corpus, mounts, tmp_path):
    pytest.importorskip("mistralrs", reason="the mistralrs wheel could not be installed")
    bucket, ids, _, _ = published
    plain = {name: generate(corpus.folder(name, tmp_path / name)) for name in ("base", "rl1e6_s41")}
    assert plain["base"] != plain["rl1e6_s41"], "the prompt must tell the versions apart, else this test proves nothing"
    reader = mounts.reader(source=bucket)
    for name, text in plain.items():
        assert generate(reader.version_folder(ids[name])) == text, name
    assert generate(reader.point) == plain["rl1e6_s41"]


def test_a_damaged_base_blob_is_never_served(published, corpus, mounts, tmp_path):
    """Guards the tests above: the bytes do come from the bucket's objects."""
    bucket, ids, _, _ = published
    copy = tmp_path / "copy"
    harness.run(["cp", "-r", bucket, copy], check=True)
    path, _ = harness.delta_between(copy, corpus.sha256["rl1e6_s40"], corpus.sha256["rl1e6_s41"])
    for offset in range(1000, path.stat().st_size, 20_000):
        harness.flip_byte(path, offset)
    reader = mounts.reader(source=copy)
    with pytest.raises(OSError):
        harness.sha256(reader.version_folder(ids["rl1e6_s41"]) / "model.safetensors")
    assert harness.sha256(reader.version_folder(ids["rl1e6_s40"]) / "model.safetensors") == corpus.sha256["rl1e6_s40"]
    done = fails(1, "verify", copy, says=path.stem[:12])
    assert hashlib.sha256(path.read_bytes()).hexdigest() != path.stem
    report = json.loads(hfd("verify", copy, "--json", check=False).out)
    assert report["ok"] is False
    assert any(path.stem in bad["object"] for bad in report["bad"]), (report, done.err)
