#!/usr/bin/env python3
"""make_seeds.py HFDELTAFS OUT: seeds for the fuzz targets from real objects: OUT/safetensors_header_fuzz,
OUT/delta_object_fuzz, OUT/manifest_fuzz. Uses the cases of HFD_SHARED where they are, and made-up pairs always."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

SEED_BYTES_MAX = 64 << 10  # larger seeds only slow the fuzzer down
CASES = pathlib.Path(os.environ.get("HFD_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared")) / "cases/inputs"


def safetensors(tensors, pad=8):
    """tensors: {name: (dtype, shape, bytes)}."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text + body


def made_up_pairs():
    """(name, base, target): one for each block mode and way of matching, all small."""
    rng = random.Random(7)
    words = [rng.choice((0x3C00, 0x3B00, 0xBC80)) + rng.randrange(128) for _ in range(4096)]
    pack = lambda values: struct.pack(f"<{len(values)}H", *values)
    base = {"a.weight": ("BF16", [64, 64], pack(words)), "b.bias": ("F32", [16], rng.randbytes(64))}
    sparse = [w + (rng.random() < 0.01) for w in words]
    dense = [w + rng.choice((-1, 0, 1)) for w in words]
    first = safetensors(base)
    yield "same", first, first
    yield "sparse", first, safetensors({**base, "a.weight": ("BF16", [64, 64], pack(sparse))})
    yield "dense", first, safetensors({**base, "a.weight": ("BF16", [64, 64], pack(dense))})
    yield "renamed", first, safetensors({"x." + name: tensor for name, tensor in base.items()})
    yield "opaque", rng.randbytes(5000), rng.randbytes(5001)
    yield "zero", b"", bytes(300_000)
    yield "odd", safetensors(base, 1), safetensors({**base, "c": ("U8", [3], b"abc")}, 1)


def put(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    if len(data) <= SEED_BYTES_MAX:
        (folder / name).write_bytes(data)


def main():
    program, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    headers, deltas, manifests = (out / t for t in ("safetensors_header_fuzz", "delta_object_fuzz", "manifest_fuzz"))
    pairs = list(made_up_pairs())
    for name, base, target in pairs:
        put(headers, name, target)
    if CASES.is_dir():
        for path in sorted((CASES / "st").glob("*.safetensors")):
            put(headers, path.name, path.read_bytes())
        pairs += [(p.name, (p / "base.safetensors").read_bytes(), (p / "variant.safetensors").read_bytes())
                  for p in sorted((CASES / "pairs").iterdir()) if (p / "base.safetensors").exists()]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name, base, target in pairs:
            (work / "base").write_bytes(base)
            (work / "target").write_bytes(target)
            (work / "delta").unlink(missing_ok=True)
            subprocess.run([program, "delta", "encode", work / "base", work / "target", work / "delta"], check=True)
            put(deltas, name, (work / "delta").read_bytes())
        folder = work / "folder"
        folder.mkdir()
        for step, (name, base, target) in enumerate(pairs[:4]):
            (folder / "model.safetensors").write_bytes(target)
            (folder / "config.json").write_text(json.dumps({"step": step, "name": name}))
            if step == 1:
                (folder / "sub" / "empty").mkdir(parents=True)
                (folder / "link").symlink_to("config.json")
                pathlib.Path(os.fsdecode(b"%s/not-utf8-\xff" % os.fsencode(folder))).write_bytes(b"x")
            subprocess.run([program, "publish", folder, work / "bucket"], check=True, stdout=subprocess.DEVNULL)
        for path in (work / "bucket" / "hfdelta" / "versions").glob("*.json"):
            put(manifests, path.name, path.read_bytes())
    counts = {folder.name: len(list(folder.iterdir())) for folder in (headers, deltas, manifests) if folder.is_dir()}
    print(counts)
    return 0 if len(counts) == 3 and all(counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
