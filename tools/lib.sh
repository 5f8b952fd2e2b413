# Sourced by the scripts of tools/: where things are, and what must be installed. Bash.
hfd_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
hfd_shared=${HFD_SHARED:-$(dirname "$hfd_root")/shared}

hfd_build_packages=(build-essential g++ meson ninja-build pkgconf libfuse3-dev fuse3 libzstd-dev liblmdb-dev
  libxxhash-dev doctest-dev nlohmann-json3-dev libcli11-dev libssl-dev zstd python3)
hfd_test_packages=(python3-venv clang-14 libclang-rt-14-dev rsync vim-tiny attr sqlite3 procps util-linux mount git
  strace xdelta3)

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# Runs a command up to three times: registries have bad moments.
try_three_times() {
  local try
  for try in 1 2 3; do
    "$@" && return 0
    say "try $try of 3 failed: $*"
    sleep $((try * 3))
  done
  return 1
}

# need_packages NAME...: installs the Debian packages that are missing. Needs root only when something is missing.
need_packages() {
  if ! command -v dpkg-query > /dev/null; then
    say "this is no Debian system: make sure that these are there: $*"
    return 0
  fi
  local missing=() name
  for name in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null)" != installed ]; then
      missing+=("$name")
    fi
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi
  if [ "$(id -u)" != 0 ]; then
    die "packages are missing: ${missing[*]}; as root: apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  try_three_times apt-get update -qq > /dev/null || die "apt-get update failed"
  try_three_times apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null < /dev/null ||
    die "cannot install ${missing[*]}"
}

# build_program FOLDER [TARGET...]: the release build (g++). Configures the folder when it is new.
build_program() {
  local folder=$1
  shift
  [ -f "$folder/build.ninja" ] || meson setup "$folder" "$hfd_root" --buildtype=release > "$folder.setup.log" 2>&1 ||
    { cat "$folder.setup.log" >&2; die "meson setup failed"; }
  rm -f "$folder.setup.log"
  ninja -C "$folder" "$@" > "$folder/ninja.log" 2>&1 || { tail -40 "$folder/ninja.log" >&2; die "the build failed"; }
}
