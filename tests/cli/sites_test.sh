#!/bin/bash
# Findings of `exec --check` name the host's calls: function, stream, file and line of a copy, a
# memset, a launch, an allocation, a free, a captured node and a host's own access; without -g the
# function. Ids do not depend on addresses.
#
# Usage: sites_test.sh ALLRANKS NVCC ROOT FOLDER
set -u
allranks=$1 nvcc=$2 root=$3 folder=$4
rm -rf "$folder" && mkdir -p "$folder" && cd "$root" || exit 1
source=tests/cli/sites.cu
failed=0
fail() { echo "FAIL $*"; failed=1; }
line() { grep -n "// $1\$" $source | cut -d: -f1; }
check() { # PROGRAM MODE
  "$allranks" exec --check --findings "$folder/$2.json" -- "$folder/$1" "$2" >"$folder/$2.txt" 2>&1
  [[ $? -eq 87 ]] || { fail "exit code of $2"; cat "$folder/$2.txt"; }
}
says() { grep -qE -- "$2" "$folder/$1" || { fail "$1 does not say: $2"; cat "$folder/$1"; }; }

compile() { # NAME OPTIONS...
  "$nvcc" -cudart shared -lineinfo -gencode 'arch=compute_90,code=compute_90' "${@:2}" \
    -o "$folder/$1" $source || exit 1
}
compile lines -g
check lines copy
says copy.txt "copy of .*, cudaMemcpyAsync in stream [0-9]+ at $source:$(line copied) \(called at $source:$(line sent)\)"
says copy.txt "launched in stream [0-9]+ at $source:$(line launched)"
says copy.txt "was allocated by cudaMalloc at $source:$(line allocated) \(called at $source:"
says copy.json '"call": "cudaMemcpyAsync"'
check lines memset
says memset.txt "memset of .*, cudaMemsetAsync in stream [0-9]+ at $source:$(line cleared)"
check lines host
says host.txt "host load of .* at $source:$(line read)"
says host.txt "was allocated by cudaMallocHost at $source:$(line pinned)"
check lines graph
says graph.txt "copy of .*, cudaMemcpyAsync in stream [0-9]+ at $source:$(line captured)"
check lines free
says free.txt "freed by cudaFreeAsync at $source:$(line freed)"
says free.txt "launched in stream [0-9]+ at $source:$(line used)"

# Without -g: functions, and a hint. The id stays when the addresses change.
id() { grep -o 'suppress: race [0-9a-f]*' "$folder/copy.txt"; }
compile names
check names copy
says copy.txt "cudaMemcpyAsync in stream [0-9]+ at .*Send.*\+0x"
says copy.txt "some host code has no source lines: compile it with -g"
first=$(id)
compile moved -Xcompiler -falign-functions=4096
check moved copy
[[ -n $first && $first == "$(id)" ]] || fail "the id '$first' has become '$(id)'"
exit $failed
