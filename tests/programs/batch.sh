#!/usr/bin/env bash
# batch.sh OUTPUT SOURCE...: writes one program that is all of the given ones, each in a namespace of
# its own, and runs the one whose name it is called by. nvcc spends most of a small program's time on
# headers, which the quick build pays once for a batch.
set -euo pipefail
exec >"$1"
shift

# Headers first, outside of any namespace; their guards make them empty where they come again.
grep -h '^#include <' "$@" | sort -u || true
grep -h '^#include "' "$@" | sort -u || true
echo '#include <cerrno>'
echo '#include <cstring>'

for source in "$@"; do
  name=$(basename "$source" .cu)
  # Lines keep their numbers, which reports name. Only a real main() may end without a return. Macros
  # end with their program.
  printf 'namespace program_%s {\n#line 1 "%s"\n' "$name" "$source"
  awk '
    /^#include/ { $0 = "" }
    /^#define/ { name = $2; sub(/\(.*/, "", name); macros[name] }
    NR > 1 { print last }
    { last = $0 }
    END {
      print (last == "}" ? "return 0; }" : last)
      for (macro in macros) print "#undef " macro
    }' "$source"
  printf '}\n'
done

printf '#line 1 "dispatch"\n'
cat <<'END'
namespace {
int Run(int (*program)(int, char**), int argc, char** argv) { return program(argc, argv); }
int Run(int (*program)(), int, char**) { return program(); }
}  // namespace

int main(int argc, char** argv) {
END
for source in "$@"; do
  name=$(basename "$source" .cu)
  printf '  if (std::strcmp(program_invocation_short_name, "%s") == 0) {\n' "$name"
  printf '    return Run(program_%s::main, argc, argv);\n  }\n' "$name"
done
cat <<'END'
  std::fprintf(stderr, "no program of this batch is called %s\n", program_invocation_short_name);
  return 1;
}
END
