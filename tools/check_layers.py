#!/usr/bin/env python3
"""check_layers.py [ROOT]: the rules of the source tree that a machine can check. --self-test plants a violation of
each rule in a small tree and fails when one goes unseen.

Rules: which layer may include which; the one home of each library; format and codec do no I/O; include/ is closed in
itself; the names in the root of the repository; files of at most 600 lines (or `// LONG FILE: reason`), functions of at
most 70 (or `// LONG FUNCTION: reason` on the line before); an SPDX line on top; `#pragma once` in headers."""
import os
import pathlib
import re
import sys
import tempfile

MAY_USE = {
    "base": [],
    "format": ["base"],
    "codec": ["base", "format"],
    "store": ["base"],
    "remote": ["base"],
    "lineage": ["base", "format", "codec", "store", "remote"],
    "rebuild": ["base", "format", "codec", "store", "remote", "lineage"],
    "publish": ["base", "format", "codec", "store", "remote", "lineage"],
    "vfs": ["base", "lineage", "rebuild", "publish"],
    "fuse": ["base", "vfs"],
    "api": ["base", "format", "codec", "store", "remote", "lineage", "rebuild", "publish"],
    "cli": ["base", "format", "codec", "store", "remote", "lineage", "rebuild", "publish", "vfs", "fuse", "api"],
}
ONLY_HOME = [  # (header pattern, layer, name)
    (r"xxh[a-z0-9_]*\.h$|xxhash\.h$", "base", "xxHash"),
    (r"openssl/", "base", "OpenSSL"),
    (r"nlohmann/", "base", "nlohmann-json"),
    (r"blake3\.h$", "base", "BLAKE3"),
    (r"zstd[a-z_]*\.h$|zdict\.h$", "codec", "zstd"),
    (r"lmdb\.h$", "store", "LMDB"),
    (r"curl/", "remote", "libcurl"),
    (r"lz4[a-z]*\.h$", "remote", "LZ4"),
    (r"(fuse3?/)?fuse[a-z_]*\.h$", "fuse", "libfuse"),
    (r"CLI/", "cli", "CLI11"),
]
PURE = ["format", "codec"]
IMPURE = re.compile(
    r"^(base/(log|clock)\.hpp|fstream|iostream|filesystem|thread|chrono|ctime|time\.h|cstdio|stdio\.h|unistd\.h|fcntl\.h|"
    r"dirent\.h|sys/.*)$")
ROOT_NAMES = {
    "meson.build", "meson_options.txt", "src", "include", "tools", "tests", "packaging", "README.md", "LICENSE",
    ".ci", ".clang-format", ".clang-tidy", ".gitignore",
}
ROOT_IGNORED = re.compile(r"^(\.git|build.*|\.venv.*|\.cache|__pycache__|compile_commands\.json)$")
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
CONTAINER = re.compile(r"^(\[\[[^\]]*\]\]\s*)*(inline\s+|static\s+|constexpr\s+|typedef\s+|export\s+)*"
                       r"(namespace|class|struct|union|enum)\b")


def blank_comments_and_strings(text):
    """The same text with comments, strings and character literals blanked; line breaks stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\((?:.*?)\)\1"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\\n|\\[^\n])*", re.S | re.M)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def without_template(head):
    while head.startswith("template"):
        depth = 0
        for at, c in enumerate(head):
            depth += c == "<"
            if c == ">":
                depth -= 1
                if depth == 0:
                    head = head[at + 1:].lstrip()
                    break
        else:
            break
    return head


def functions(text):
    """(line, lines, head) of each function body, found by braces alone: rough, but enough to see long ones."""
    clean = blank_comments_and_strings(text)
    stack, start, out = [], 0, []
    for at, c in enumerate(clean):
        if c == "{":
            head = without_template(clean[start:at].strip())
            inside = any(kind != "container" for kind, *_ in stack)
            if inside:
                kind = "inner"
            elif CONTAINER.match(head) or re.fullmatch(r"(extern)?", head):
                kind = "container"
            elif "(" in head and not head.rstrip().endswith(("=", ",")):
                kind = "function"
            else:
                kind = "inner"
            first = start + len(clean[start:at]) - len(clean[start:at].lstrip())
            stack.append((kind, first, head))
            start = at + 1
        elif c == "}":
            if stack:
                kind, first, head = stack.pop()
                if kind == "function":
                    line = clean.count("\n", 0, first) + 1
                    out.append((line, clean.count("\n", first, at) + 1, head))
            start = at + 1
        elif c == ";" or (c == ":" and re.search(r"\b(public|private|protected)\s*$", clean[start:at])):
            start = at + 1
    return out


def check_includes(path, layer, text, say):
    for quote, name in INCLUDE.findall(text):
        for pattern, home, library in ONLY_HOME:
            if re.match(pattern, name) and layer != home:
                say(path, f"{name}: {library} belongs in src/{home} only")
        if layer in PURE and IMPURE.match(name):
            say(path, f"{name}: {layer} is pure: no I/O, clock, log or thread of its own")
        if layer == "include":
            if quote == '"' and not name.startswith("hfdeltafs/"):
                say(path, f"{name}: include/ may include hfdeltafs/ and the standard library only")
            if quote == "<" and not re.fullmatch(r"[a-z_0-9]+", name):
                say(path, f"{name}: public headers include no third-party or system header")
            continue
        if quote == "<" or name.startswith("hfdeltafs/"):
            continue
        used = name.split("/")[0]
        if "/" not in name:
            say(path, f'{name}: name the layer: "{layer}/{name}"')
        elif used not in MAY_USE:
            say(path, f"{name}: {used} is no layer")
        elif used != layer and used not in MAY_USE[layer]:
            say(path, f"{name}: {layer} may not use {used} (it may use: {' '.join(MAY_USE[layer]) or 'nothing'})")


def check_size(path, text, say):
    lines = text.count("\n") + 1
    if lines > FILE_LINES_MAX and not re.search(r"(//|#) LONG FILE: \S", text):
        say(path, f"{lines} lines; at most {FILE_LINES_MAX}, or say `// LONG FILE: reason`")
    if path.suffix not in (".cpp", ".hpp"):
        return
    source_lines = text.split("\n")
    for line, count, head in functions(text):
        excused = line >= 2 and "LONG FUNCTION: " in source_lines[line - 2]
        is_suite = head.startswith("TEST_SUITE")
        if count > FUNCTION_LINES_MAX and not excused and not is_suite:
            short = " ".join(head.split())[:60]
            say(path, f"line {line}: a function of {count} lines (at most {FUNCTION_LINES_MAX}): {short}")


def check_text(path, text, say):
    if not text.startswith("// SPDX-License-Identifier: "):
        say(path, "the first line must be `// SPDX-License-Identifier: Apache-2.0`")
    if path.suffix == ".hpp" and "#pragma once" not in text:
        say(path, "a header needs #pragma once")


def check(root):
    root = pathlib.Path(root)
    problems = []

    def say(path, what):
        problems.append(f"{path.relative_to(root)}: {what}")

    for name in sorted(os.listdir(root)):
        if name not in ROOT_NAMES and not ROOT_IGNORED.match(name):
            say(root / name, "the root of the repository holds a fixed list of names: put it into a folder")
    for folder in ("src", "include", "tests", "tools"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".c", ".h", ".py") or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            check_size(path, text, say)
            if path.suffix == ".py":
                continue
            check_text(path, text, say)
            parts = path.relative_to(root).parts
            if folder == "include":
                check_includes(path, "include", text, say)
            elif folder == "src":
                layer = parts[1] if len(parts) > 2 else None
                if layer not in MAY_USE:
                    say(path, "source files stand in the folder of a layer")
                else:
                    check_includes(path, layer, text, say)
    return problems


SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = SPDX + "#pragma once\n"
LONG_BODY = "\n".join(f"  value += {i};" for i in range(80))
GOOD = {
    "meson.build": "",
    "include/hfdeltafs/types.hpp": HEADER + "#include <string>\n#include \"hfdeltafs/result.hpp\"\n",
    "src/base/hash.hpp": HEADER + "#include <openssl/evp.h>\n#include <xxhash.h>\n",
    "src/codec/frame.cpp": SPDX + '#include "codec/frame.hpp"\n#include <zstd.h>\n#include "format/header.hpp"\n',
    "src/fuse/session.cpp": SPDX + "#include <fuse_lowlevel.h>\n#include \"vfs/tree.hpp\"\n",
    "src/base/fine.cpp": SPDX + "namespace hfd {\nint f(int value) {\n" + "  value += 1;\n" * 60 + "  return value;\n}\n}\n",
    "src/base/table.cpp": SPDX + "const int table[] = {\n" + "  1,\n" * 90 + "};\n",
    "src/base/excused.cpp": SPDX + "// LONG FUNCTION: a table as code\nint f(int value) {\n" + LONG_BODY + "\n  return value;\n}\n",
    "src/base/list.cpp": SPDX + "// LONG FILE: one table\n" + "// row\n" * 700,
}
BAD = {  # path -> text that must be refused
    "src/format/up.cpp": SPDX + '#include "codec/frame.hpp"\n',
    "src/base/domain.cpp": SPDX + '#include "format/header.hpp"\n',
    "src/rebuild/sibling.cpp": SPDX + '#include "publish/journal.hpp"\n',
    "src/fuse/deep.cpp": SPDX + '#include "lineage/manifest.hpp"\n',
    "src/store/compress.cpp": SPDX + "#include <zstd.h>\n",
    "src/lineage/index.cpp": SPDX + "#  include <lmdb.h>\n",
    "src/store/net.cpp": SPDX + "#include <curl/curl.h>\n",
    "src/codec/frame4.cpp": SPDX + "#include <lz4frame.h>\n",
    "src/vfs/kernel.cpp": SPDX + "#include <fuse3/fuse_lowlevel.h>\n",
    "src/cli/kernel.cpp": SPDX + "#include <fuse.h>\n",
    "src/lineage/json.cpp": SPDX + "#include <nlohmann/json.hpp>\n",
    "src/codec/hash.cpp": SPDX + "#include <xxhash.h>\n",
    "src/remote/sign.cpp": SPDX + "#include <openssl/hmac.h>\n",
    "src/api/options.cpp": SPDX + "#include <CLI/CLI.hpp>\n",
    "src/format/file.cpp": SPDX + "#include <fstream>\n",
    "src/codec/log.cpp": SPDX + '#include "base/log.hpp"\n',
    "src/base/bare.cpp": SPDX + '#include "bare.hpp"\n',
    "src/vfs/unknown.cpp": SPDX + '#include "utils/strings.hpp"\n',
    "src/stray.cpp": SPDX,
    "include/hfdeltafs/leak.hpp": HEADER + '#include "base/bytes.hpp"\n',
    "include/hfdeltafs/third.hpp": HEADER + "#include <zstd.h>\n",
    "src/base/long.cpp": SPDX + "// row\n" * 700,
    "tools/long.py": "# row\n" * 700,
    "src/base/long_function.cpp": SPDX + "namespace hfd {\nclass C {\n public:\n  C() : a_{0} {}\n  int f(int value) const {\n"
                                  + LONG_BODY + "\n    return value;\n  }\n};\n}\n",
    "src/base/long_template.cpp": SPDX + "template <class T>\nT f(T value) {\n" + LONG_BODY + "\n  return value;\n}\n",
    "src/base/no_spdx.cpp": "int f();\n",
    "src/base/no_guard.hpp": SPDX,
    "notes.txt": "",
    "docs/page.md": "",
}


def self_test():
    missed = []

    def write(root, files):
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    with tempfile.TemporaryDirectory() as root:
        write(root, GOOD)
        missed += [f"false alarm: {p}" for p in check(root)]
    for name, text in BAD.items():
        with tempfile.TemporaryDirectory() as root:
            write(root, GOOD)
            write(root, {name: text})
            found = [p for p in check(root) if p.startswith(name.split("/")[0] if "/" not in name or name.startswith("docs") else name)]
            if not found:
                missed.append(f"not seen: {name}")
    for line in missed:
        print(line)
    print(f"self-test: {len(BAD)} violations planted, {len(missed)} wrong")
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    found = check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    for problem in found:
        print(problem)
    print(f"check_layers: {len(found)} problems")
    sys.exit(1 if found else 0)
