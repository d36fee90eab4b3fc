# Sourced by tools/demo and tools/test: machine checks and packages. Plain POSIX shell: a fresh machine has nothing else.

# What the program needs. OpenCV comes without imgcodecs and PCL stays out: few packages, a quick start.
takt_packages="g++ cmake ninja-build pkg-config ca-certificates
 libiceoryx-posh-dev libacl1-dev libopencv-core-dev libopencv-imgproc-dev libyaml-cpp-dev
 libprotobuf-dev protobuf-compiler libonnx-dev libcli11-dev libfmt-dev nlohmann-json3-dev libexpected-dev
 liblz4-dev libzstd-dev libbz2-dev libsqlite3-dev zlib1g-dev libxxhash-dev libhwy-dev
 libflatbuffers-dev flatbuffers-compiler libjpeg62-turbo-dev libpng-dev"
# What the tests need beyond that.
takt_test_packages="$takt_packages g++-11 libgtest-dev libgmock-dev libpcl-dev python3 python3-venv python3-jsonschema util-linux libonnx-testdata libgecode-dev libboost-context-dev"

if [ -t 1 ]; then bold=$(printf '\033[1m'); plain=$(printf '\033[0m'); else bold=; plain=; fi
takt_start=$(date +%s)
step() { printf '%s[%s] %s%s  (%ss)\n' "$bold" "$1" "$2" "$plain" "$(($(date +%s) - takt_start))"; }
note() { printf '      %s\n' "$1"; }
# stop EXIT_CODE "what is wrong" "what to do"
stop() {
  printf '\n%s: %s\n  -> %s\n' "$(basename "$0")" "$2" "$3" >&2
  exit "$1"
}

# check_machine FREE_DISK_MB PACKAGE...: shared memory, disk, cores, control group quota and, where packages are missing,
# the network. Exit code 5 with the remedy. Leaves the missing packages in $missing, and sudo in $as_root where needed.
check_machine() {
  needed_mb=$1
  shift
  command -v apt-get >/dev/null 2>&1 || stop 5 "this is no Debian (no apt-get)" \
    "takt is built and tested on Debian 12; run it there, or in a container: docker run -it --shm-size=512m debian:12"
  [ -d /dev/shm ] || stop 5 "there is no shared memory file system (/dev/shm)" \
    "mount one: mount -t tmpfs -o size=512M tmpfs /dev/shm"
  shm_mb=$(($(df -Pk /dev/shm | awk 'NR==2 {print $4}') / 1024))
  [ "$shm_mb" -ge 200 ] || stop 5 "only $shm_mb MB of shared memory are free in /dev/shm, 200 MB are needed" \
    "mount -o remount,size=512M /dev/shm   (container: start it with --shm-size=512m)"
  disk_mb=$(($(df -Pk . | awk 'NR==2 {print $4}') / 1024))
  [ "$disk_mb" -ge "$needed_mb" ] || stop 5 "only $disk_mb MB of disk are free here, $needed_mb MB are needed" \
    "free some space, or clone into a larger file system"
  cores=$(getconf _NPROCESSORS_ONLN)
  note "shared memory $shm_mb MB, disk $disk_mb MB, $cores core(s)"
  [ "$cores" -ge 2 ] || note "warning: one core only; real-time deadlines will be missed, digests are still exact"
  quota=max
  if [ -r /sys/fs/cgroup/cpu.max ]; then
    read -r quota period </sys/fs/cgroup/cpu.max
  elif [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ] && [ "$(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us)" != -1 ]; then
    quota=$(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us)
    period=$(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)
  fi
  if [ "$quota" != max ]; then
    note "warning: a control group grants $quota us of CPU per $period us (docker: --cpus); threads will be throttled"
  fi
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
  done
  as_root=
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || stop 5 "packages are missing and this is neither root nor is there sudo" \
      "run as root: apt-get install --no-install-recommends$missing"
    as_root=sudo
  fi
  $as_root apt-get update >"$build/install.log" 2>&1 ||
    stop 5 "packages are missing and the package index cannot be reached (see $build/install.log)" \
      "check the network and /etc/apt/sources.list, then run $0 again"
  note "network: the package index was reached"
}

# install_packages: what check_machine found missing, without recommends.
install_packages() {
  if [ -z "$missing" ]; then
    note "all packages are there"
    return 0
  fi
  note "installing:$missing"
  # shellcheck disable=SC2086  # word splitting is meant
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing \
    >>"$build/install.log" 2>&1 ||
    stop 5 "apt-get install failed: $(grep -m1 '^E:' "$build/install.log") (see $build/install.log)" \
      "takt needs Debian 12 (bookworm) packages; fix the cause, then run $0 again: it goes on where it stopped"
}

# build_tree FOLDER CMAKE_ARGUMENTS...: configure once, build; on failure the first errors are shown.
# takt_targets: what to build, everything by default.
build_tree() {
  tree=$1
  shift
  mkdir -p "$tree"
  launcher=
  if command -v ccache >/dev/null 2>&1; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  # shellcheck disable=SC2086
  cmake -S . -B "$tree" -G Ninja $launcher "$@" >"$tree/configure.log" 2>&1 ||
    { tail -n 20 "$tree/configure.log" >&2; stop 5 "configuring failed (see $tree/configure.log)" "read the lines above"; }
  if [ -t 1 ]; then
    ninja -C "$tree" ${takt_targets:-} || stop 5 "building failed" "read the first error above; a full disk or too little memory looks like this too"
  else
    ninja -C "$tree" ${takt_targets:-} >"$tree/build.log" 2>&1 ||
      { grep -m 5 -A 4 -E 'error:|FAILED' "$tree/build.log" >&2 || tail -n 20 "$tree/build.log" >&2
        stop 5 "building failed (see $tree/build.log)" "read the lines above"; }
  fi
}
