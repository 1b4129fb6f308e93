// See same.h.
#include "mutants/same.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/run.h"
#include "problem/args.h"
#include "problem/problem.h"
#include "problem/source.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

// Labels of places in the source and everything about them are left out.
std::string Bare(const fs::path& path) {
  std::ifstream in(path);
  std::string text;
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find("//"));
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line.compare(first, 5, ".file") == 0 ||
        line.compare(first, 4, ".loc") == 0)
      continue;
    text += line.substr(first) + "\n";
  }
  return text;
}

Result<std::string> PtxOf(const fs::path& folder, const std::string& source) {
  const fs::path cu = folder / "a.cu", ptx = folder / "a.ptx";
  std::ofstream(cu, std::ios::binary) << source;
  const std::string command = fmt::format(
      "nvcc -std=c++17 -O3 -arch=compute_90 -ptx -I'{}' -I'{}/include' '{}' -o '{}' "
      ">/dev/null 2>&1",
      folder.string(), ALLRANKS_SOURCE_DIR, cu.string(), ptx.string());
  if (std::system(command.c_str()) != 0) return Fail("nvcc fails");
  return Bare(ptx);
}

}  // namespace

Result<bool> SamePtx(const Mutant& mutant) {
  const Result<problem::Problem> problem = problem::Load(HomeOf(mutant));
  if (!problem) return Fail(problem.error());
  if (problem->window == problem::Window::kHost) return false;
  const Result<std::string> original = problem::ReadFile(mutant.original);
  if (!original) return Fail(original.error());
  const tools::Scratch scratch("mutants");
  const fs::path& folder = scratch.path();
  std::ofstream(folder / "problem.h", std::ios::binary) << problem::RenderHeader(*problem);
  const Result<std::string> before = PtxOf(folder, *original);
  const Result<std::string> after = PtxOf(folder, mutant.text);
  if (!before) return Fail("{}: {}", mutant.original.string(), before.error().message);
  return after && *before == *after;
}

}  // namespace allranks::mutants
