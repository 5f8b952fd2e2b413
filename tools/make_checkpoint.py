#!/usr/bin/env python3
"""Made-up model checkpoints, with the standard library only.

make_checkpoint.py new DIR [--mib 32] [--shards 2] [--seed 1]: a model folder of bf16 safetensors shards whose exponents are
    spread like trained weights and whose mantissas are random.
make_checkpoint.py step FROM DIR [--fraction 0.01] [--seed 1]: a copy of a model folder in which that share of the elements
    of each bf16, f16 or f32 tensor moved by one unit in the last place, as after an optimiser step at a low rate."""
import argparse
import json
import pathlib
import random
import shutil
import struct

WIDTHS = {"BF16": 2, "F16": 2, "F32": 4}
CHANGES_MAX = 4_000_000  # a file: keeps `step` of a large model within a minute or two


def bf16_pool(rng, count):
    """`count` normally distributed bf16 words (sigma 0.02)."""
    words = bytearray()
    for _ in range(count):
        words += struct.pack("<f", rng.gauss(0, 0.02))[2:]
    return bytes(words)


def bf16_noise(rng, pool, size):
    """`size` bytes of bf16: exponents and signs from the pool, the seven mantissa bits fresh."""
    start = 2 * rng.randrange(len(pool) // 4)
    body = (pool[start:] + pool * (size // len(pool) + 1))[:size]
    mask = int.from_bytes(b"\x7f\x00" * (size // 2), "little")
    mixed = int.from_bytes(body, "little") ^ (int.from_bytes(rng.randbytes(size), "little") & mask)
    return mixed.to_bytes(size, "little")


def write_shard(path, tensors, rng, pool):
    """tensors: [(name, shape)], all bf16."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        size = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, shape in tensors:
            file.write(bf16_noise(rng, pool, 2 * shape[0] * shape[1]))
    return at


def new(options):
    folder = pathlib.Path(options.dir)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(options.seed)
    pool = bf16_pool(rng, 1 << 17)
    columns = 1024
    rows = max(1, options.mib * (1 << 20) // 2 // columns)
    names = ["model.embed_tokens.weight"]
    names += [f"model.layers.{i}.{part}.weight" for i in range(4) for part in ("self_attn.q_proj", "mlp.up_proj")]
    shapes = [(name, [rows // len(names) + (i < rows % len(names)), columns]) for i, name in enumerate(names)]
    weight_map, total = {}, 0
    for shard in range(options.shards):
        name = f"model-{shard + 1:05d}-of-{options.shards:05d}.safetensors"
        part = shapes[shard * len(shapes) // options.shards:(shard + 1) * len(shapes) // options.shards]
        total += write_shard(folder / name, part, rng, pool)
        weight_map.update({tensor: name for tensor, _ in part})
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (folder / "config.json").write_text(json.dumps({"architectures": ["MadeUp"], "hidden_size": columns}, indent=2))


def change_words(file, start, count, width, changes, rng):
    """Moves `changes` of `count` words at byte `start` by one, away from overflow into inf and nan."""
    for at in sorted(rng.sample(range(count), changes)):
        file.seek(start + at * width)
        word = int.from_bytes(file.read(width), "little")
        magnitude_bits = 8 * width - 1
        magnitude = word & ((1 << magnitude_bits) - 1)
        if not 0 < magnitude < (0x7F << (magnitude_bits - 8)):
            continue
        file.seek(start + at * width)
        file.write((word + rng.choice((-1, 1))).to_bytes(width, "little"))


def step_file(path, fraction, rng):
    with open(path, "r+b") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_bytes))
        left = CHANGES_MAX
        for name, tensor in header.items():
            width = WIDTHS.get(tensor.get("dtype")) if name != "__metadata__" else None
            if width is None:
                continue
            first, last = tensor["data_offsets"]
            changes = min(left, int((last - first) // width * fraction))
            left -= changes
            change_words(file, 8 + header_bytes + first, (last - first) // width, width, changes, rng)


def step(options):
    source, folder = pathlib.Path(options.source), pathlib.Path(options.dir)
    shutil.copytree(source, folder, dirs_exist_ok=True)
    rng = random.Random(options.seed)
    for path in sorted(folder.rglob("*.safetensors")):
        path.chmod(0o644)
        step_file(path, options.fraction, rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("new")
    make.add_argument("dir")
    make.add_argument("--mib", type=int, default=32)
    make.add_argument("--shards", type=int, default=2)
    make.add_argument("--seed", type=int, default=1)
    make.set_defaults(run=new)
    change = commands.add_parser("step")
    change.add_argument("source")
    change.add_argument("dir")
    change.add_argument("--fraction", type=float, default=0.01)
    change.add_argument("--seed", type=int, default=1)
    change.set_defaults(run=step)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
