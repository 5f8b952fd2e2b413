"""The developers' cases of ../shared/cases: files good and bad, pairs, model folders, names. All come back byte for byte
through publish, a second mount and pull."""
import hashlib
import json
import os
import shutil
import subprocess

import pytest

import harness
from harness import fails, hfd, hfd_json, run

# Names of names.json that are temporary names of editors, savers and systems: usable, never published.
JUNK = ["tilde~", "file~", ".tmpAbCdEf", "file.safetensors.tmp", ".file.swp", "4913", "#file#", ".nfs0001", ".DS_Store",
        "._x", "model.safetensors.incomplete"]


def check_script(cases, name, *arguments, timeout=110):
    done = run([harness.python_of_venv(), cases / "checks" / name, *arguments], timeout=timeout)
    assert done.code == 0, f"{name} {arguments}\n{done.out}\n{done.err}"
    return done.out


@pytest.mark.asan
def test_the_checks_pass_on_a_mount_a_second_mount_and_a_pulled_folder(cases, mounts, tmp_path):
    inputs = cases / "inputs"
    writer = mounts.mount()
    check_script(cases, "roundtrip.py", inputs, writer.point)
    os.mkdir(writer / "names-kept")
    check_script(cases, "names.py", inputs, writer / "names-kept", "--keep")
    os.mkdir(writer / "versions")
    check_script(cases, "versions.py", writer / "versions")
    # st/ and dirs/ hold sets that are incomplete on purpose.
    held = fails(4, "commit", writer.point)
    assert held.out.strip() == ""
    version = writer.commit("--partial")["version"]

    reader = mounts.reader()
    assert reader.status()["version"] == version
    pulled = tmp_path / "pulled"
    hfd("pull", mounts.bucket, pulled)
    for folder in (reader.point, pulled):
        check_script(cases, "roundtrip.py", inputs, folder, "--verify-only")
        out = check_script(cases, "names.py", inputs, folder / "names-kept", "--verify-only")
        print(folder, out)
        here = set(os.listdir(folder / "names-kept"))
        names = json.loads((inputs / "names.json").read_text())["names"]
        there = set(os.listdir(writer / "names-kept"))
        assert here == {n for n in names if n in there and n not in JUNK}
    assert harness.tree(pulled) == harness.tree(reader.point)


@pytest.mark.asan
def test_names_can_be_made_renamed_and_removed(cases, mounts):
    writer = mounts.mount()
    os.mkdir(writer / "sub")
    check_script(cases, "names.py", cases / "inputs", writer / "sub")


@pytest.mark.asan
def test_publish_of_a_folder_takes_everything_and_warns_about_incomplete_sets(cases, mounts, tmp_path):
    inputs = cases / "inputs"
    folder = tmp_path / "folder"
    for sub in ("st", "dirs"):
        shutil.copytree(inputs / sub, folder / sub)
    shutil.copytree(inputs / "names", folder / "names-kept")
    bucket = tmp_path / "published"
    done = hfd("publish", folder, bucket, "-m", "cases")
    assert len(done.out.strip()) == 64, done.out
    assert "d03_index_names_missing_shard" in done.err, f"a warning that names the incomplete set is wanted: {done.err!r}"
    reader = mounts.reader(source=bucket)
    wanted = {path: value for path, value in harness.tree(folder).items()
              if os.path.basename(path) not in JUNK or not path.startswith("names-kept")}
    assert harness.tree(reader.point) == wanted
    hfd("pull", bucket, tmp_path / "pulled")
    assert harness.tree(tmp_path / "pulled") == wanted
    check_script(cases, "roundtrip.py", inputs, reader.point, "--sub", "st/", "--verify-only")
    report = hfd_json("verify", bucket)
    assert report["ok"] is True


def pair_folders(cases):
    return sorted(p for p in (cases / "inputs" / "pairs").iterdir() if p.is_dir())


@pytest.mark.asan
def test_all_pairs_come_back_through_a_mount(cases, mounts, tmp_path):
    writer = mounts.mount()
    ids = {}
    for part in ("base", "variant"):
        for pair in pair_folders(cases):
            os.makedirs(writer / pair.name, exist_ok=True)
            run(["cp", pair / f"{part}.safetensors", writer / pair.name / "model.safetensors"], check=True)
        ids[part] = writer.commit("-m", part)["version"]
    assert ids["base"] != ids["variant"]
    reader = mounts.reader()
    for part, version in ids.items():
        hfd("pull", mounts.bucket, tmp_path / part, "--version", version)
        for pair in pair_folders(cases):
            want = (pair / f"{part}.safetensors").read_bytes()
            assert (reader.version_folder(version) / pair.name / "model.safetensors").read_bytes() == want, pair.name
            assert (tmp_path / part / pair.name / "model.safetensors").read_bytes() == want, pair.name
    for pair in pair_folders(cases):
        assert (reader / pair.name / "model.safetensors").read_bytes() == (pair / "variant.safetensors").read_bytes()


BLOB_BYTES_MAX = 65536  # smaller files may be stored whole
# What a delta may take, beyond the general bound (cases/README.md, 58 to 61).
SIZE_MAX = {"p09_vocab_grow_8_rows": 8192, "p10_vocab_shrink_20_rows": 4096, "p14_tie_head_removed": 4096,
            "p15_renamed_prefix": 4096, "p01_identical": 1024, "p18_reshape_same_bytes": 1024}


@pytest.mark.asan
def test_the_delta_of_each_pair_is_exact_and_never_larger_than_zstd(cases, tmp_path):
    sizes, too_large = {}, []
    for pair in pair_folders(cases):
        base, variant = pair / "base.safetensors", pair / "variant.safetensors"
        delta, back = tmp_path / "delta", tmp_path / "back"
        for path in (delta, back):
            path.unlink(missing_ok=True)
        hfd("delta", "encode", base, variant, delta)
        hfd("delta", "apply", base, delta, back)
        assert back.read_bytes() == variant.read_bytes(), pair.name
        info = hfd_json("delta", "info", delta)
        assert info["bytes"] == delta.stat().st_size
        assert info["target"] == {"bytes": variant.stat().st_size, "sha256": harness.sha256(variant)}
        assert sum(info["modes"].values()) == info["blocks"]
        zstd = len(subprocess.run(["zstd", "-3", "-q", "-c", variant], stdout=subprocess.PIPE, check=True).stdout)
        sizes[pair.name] = (delta.stat().st_size, zstd)
        limit = min(zstd * 1.01 + 64, SIZE_MAX.get(pair.name, 1 << 60))
        if variant.stat().st_size > BLOB_BYTES_MAX and delta.stat().st_size > limit:
            too_large.append((pair.name, delta.stat().st_size, int(limit)))
    print(sizes)
    assert not too_large, too_large


@pytest.mark.asan
def test_resharded_tensors_are_found_in_other_files(cases, mounts):
    """Case 64: three shards become two with the same tensors."""
    writer = mounts.mount()
    dirs = cases / "inputs" / "dirs"
    run(["cp", "-r", f"{dirs / 'd01_three_shards'}/.", writer.point], check=True)
    writer.commit()
    for path in list(writer.point.glob("*.safetensors")):
        path.unlink()
    run(["cp", "-r", f"{dirs / 'd02_resharded_two'}/.", writer.point], check=True)
    row = writer.commit()
    assert row["stored_bytes"] < 8192
    reader = mounts.reader()
    assert harness.tree(reader.point) == harness.tree(dirs / "d02_resharded_two")


def test_the_expected_hashes_are_those_of_the_inputs(cases):
    """Guards the comparison itself."""
    expected = json.loads((cases / "inputs" / "expected.json").read_text())["files"]
    assert len(expected) > 150
    for name, entry in expected.items():
        data = (cases / "inputs" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"], name
