#!/usr/bin/env bash
# lint.sh [FILE...]: clang-tidy-14 over the files given, or over those that differ from the main branch's last commit.
# About 7 s a file. Uses the compile commands of build-lint.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need_packages clang-tidy-14 clang-14
cd "$hfd_root"
[ -f build-lint/build.ninja ] || CC=clang-14 CXX=clang++-14 meson setup build-lint > /dev/null
ninja -C build-lint -t compdb > /dev/null  # fails when the build files are broken
if [ $# -eq 0 ]; then
  mapfile -t changed < <(git diff --name-only --diff-filter=d HEAD~1 -- '*.cpp')
  set -- "${changed[@]}"
fi
[ $# -gt 0 ] || { say "nothing to look at"; exit 0; }
printf '%s\0' "$@" | xargs -0 -n 1 -P 2 clang-tidy-14 -p build-lint --quiet
