#!/bin/bash
# The packages: what they are made of, and a fresh minimal Debian with nothing but them and what they depend on, in
# which an ordinary user runs, checks and judges. Nothing is left when they are removed. CUDA, which Debian has not,
# is mounted from this machine. Needs root and mmdebstrap for the second half.
# Usage: package_test.sh BUILD CUDA_HOME FOLDER SOURCE
set -u
export LC_ALL=C
build=$1 cuda=$(realpath "$2") folder=$3 source=$4
fail() { echo "FAIL $*"; exit 1; }
rm -rf "$folder" && mkdir -p "$folder/packages" || exit 1
for kind in DEB TGZ; do
  (cd "$folder/packages" && cpack --config "$build/CPackConfig.cmake" -G $kind -B "$folder/packages") >"$folder/cpack.log" 2>&1 ||
    fail "cpack -G $kind: $(tail -n 20 "$folder/cpack.log")"
done
rm -rf "$folder/packages/_CPack_Packages"
ls -l "$folder/packages"
mkdir "$folder/tar" && tar -xzf "$folder"/packages/allranks-*.tar.gz -C "$folder/tar" --strip-components=1 || fail tar
"$folder/tar/bin/allranks" problems list >/dev/null || fail "the tarball does not run where it is unpacked"
debs=("$folder"/packages/*.deb)
((${#debs[@]} == 3)) || fail "packages: ${debs[*]}"
depends=$(dpkg-deb -f "$folder"/packages/allranks_*_amd64.deb Depends)
[[ $depends == *libc6*libcurl4* ]] || fail "dependencies: $depends"

if ((EUID != 0)) || ! command -v mmdebstrap >/dev/null; then
  echo "PASS packages; not installed anywhere: that needs root and mmdebstrap"
  exit 0
fi
root=$folder/root
begin=$SECONDS
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=(/etc/apt/sources.list /etc/apt/sources.list.d/*)
for i in "${!sources[@]}"; do [[ -s ${sources[i]} ]] || unset "sources[i]"; done
mmdebstrap --quiet --variant=minbase "$suite" "$root" "${sources[@]}" \
  --customize-hook="copy-in ${debs[*]} /tmp" \
  --customize-hook='find "$1" -xdev -path "$1/tmp" -prune -o -name "*allranks*" -print >"$1/tmp/before"' \
  --customize-hook='chroot "$1" sh -c "apt-get install -y -q --install-recommends /tmp/*.deb"' >"$folder/root.log" 2>&1 ||
  fail "mmdebstrap: $(tail -n 20 "$folder/root.log")"
[[ ! -s $root/tmp/before ]] || fail "the root was not fresh"
echo "a minimal root with the packages: $((SECONDS - begin)) s"

# inside COMMAND: in the root, as an ordinary user.
mkdir -p "$root/usr/local/cuda" "$root/home/user"
chown 1000:1000 "$root/home/user"
inside() {
  bwrap --bind "$root" / --ro-bind "$cuda" /usr/local/cuda --proc /proc --dev /dev --tmpfs /dev/shm --clearenv \
    --setenv PATH /usr/local/cuda/bin:/usr/bin:/bin --setenv HOME /home/user --chdir /home/user --die-with-parent \
    setpriv --reuid=1000 --regid=1000 --clear-groups bash -c "$1"
}
inside 'allranks --version' || fail "--version"
# Models, NCCL and Slurm are not there: programs run and candidates are judged all the same.
said=$(inside 'allranks doctor --json') || fail "doctor: $said"
[[ $said == *'"exec": true'*'"judge": true'* ]] || fail "doctor: $said"
inside 'allranks doctor' || fail "doctor"
# README.md's first example, from its source.
cp "$source/tests/programs/communication/allreduce_one_shot.cu" "$source"/tests/programs/*.h "$root/home/user/" || fail copy
begin=$SECONDS
said=$(inside 'nvcc -lineinfo -I . -o one_shot allreduce_one_shot.cu && allranks exec --devices 8 --stats -- ./one_shot 8' 2>&1) ||
  fail "the first example: $said"
[[ $said == *'PASS allreduce_one_shot: 8 ranks'*'us of virtual time on h100x8'* ]] || fail "the first example: $said"
echo "README.md's first example, from the source: $((SECONDS - begin)) s"
begin=$SECONDS
inside 'nvcc -lineinfo -o relaxed /usr/share/allranks/examples/relaxed_flag.cu' || fail nvcc
said=$(inside 'allranks exec --check -- ./relaxed' 2>&1)
(($? == 87)) && [[ $said == *relaxed_flag.cu:* ]] || fail "exec --check: $said"
echo "a race, from the source: $((SECONDS - begin)) s"
begin=$SECONDS
said=$(inside 'allranks judge allreduce_one_shot --seed 1 --solution /usr/share/allranks/problems/collective/allreduce_one_shot/reference.cu' 2>&1) ||
  fail "judge: $said"
echo "a verdict: $((SECONDS - begin)) s"
chroot "$root" dpkg -P allranks-dev allranks-problems allranks >>"$folder/root.log" 2>&1 || fail "dpkg -P"
left=$(find "$root" -xdev \( -path "$root/tmp" -o -path "$root/home" -o -path "$root/var" \) -prune -o -name '*allranks*' -print)
[[ -z $left ]] || fail "left behind: $left"
rm -rf "$root"
echo "PASS packages, installed, used and removed"
