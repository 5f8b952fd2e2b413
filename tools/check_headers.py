#!/usr/bin/env python3
"""check_headers.py [ROOT]: each header of src/ and include/ must compile alone (-fsyntax-only). --self-test plants a
header that does not and fails when that goes unseen. CXX names the compiler (default g++)."""
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

PACKAGES = ["fuse3", "libzstd", "lmdb", "libcrypto", "nlohmann_json", "CLI11"]
FLAGS = ["-std=c++20", "-fsyntax-only", "-x", "c++", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-Werror",
         "-Wno-pragma-once-outside-header"]


def package_flags():
    run = subprocess.run(["pkg-config", "--cflags", *PACKAGES], capture_output=True, text=True)
    return shlex.split(run.stdout) if run.returncode == 0 else []


def check(root):
    root = pathlib.Path(root)
    headers = sorted(p for folder in ("include", "src") for p in (root / folder).rglob("*.hpp"))
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    flags = [*FLAGS, f"-I{root / 'src'}", f"-I{root / 'include'}", *package_flags()]
    if "g++" in compiler[-1] and "clang" not in compiler[-1]:
        flags.remove("-Wno-pragma-once-outside-header")

    def compile_alone(header):
        # Included rather than named as the input: `#pragma once` in a main file is a warning of its own.
        name = header.relative_to(root)
        run = subprocess.run([*compiler, *flags, "-"], input=f'#include "{header}"\n', capture_output=True, text=True)
        return None if run.returncode == 0 else f"{name} does not compile alone:\n{run.stderr[:2000]}"

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        problems = [p for p in pool.map(compile_alone, headers) if p]
    return len(headers), problems


def self_test():
    good = "#pragma once\n#include <string>\ninline std::string f() { return {}; }\n"
    bad = "#pragma once\ninline std::string f() { return {}; }\n"
    with tempfile.TemporaryDirectory() as root:
        for folder in ("src/base", "include/hfdeltafs"):
            pathlib.Path(root, folder).mkdir(parents=True)
        for name, text in {"src/base/good.hpp": good, "src/base/bad.hpp": bad, "include/hfdeltafs/bad.hpp": bad}.items():
            pathlib.Path(root, name).write_text(text)
        count, problems = check(root)
        ok = count == 3 and len(problems) == 2 and all("bad.hpp" in p for p in problems)
        print("self-test:", "ok" if ok else f"wrong: {problems}")
        return 0 if ok else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    count, found = check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    for problem in found:
        print(problem)
    print(f"check_headers: {count} headers, {len(found)} problems")
    sys.exit(1 if found or count == 0 else 0)
