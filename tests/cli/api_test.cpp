// `allranks api`: it lists every function that the toolkit's headers declare.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace {

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), got);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

struct Listing {
  nlohmann::json all;
  std::map<std::string, nlohmann::json> functions;
};

const Listing& TheListing() {
  static const Listing* listing = [] {
    auto* made = new Listing;
    made->all = nlohmann::json::parse(Output(ALLRANKS_COMMAND " api --json"));
    for (const auto& function : made->all["functions"])
      made->functions[function["api"].get<std::string>() + " " +
                      function["name"].get<std::string>()] = function;
    return made;
  }();
  return *listing;
}

// Names in front of a parenthesis, in declarations that begin with `result`.
std::vector<std::string> Declared(const std::string& header, const std::string& result,
                                  const std::string& prefix) {
  std::ifstream stream(std::string(CUDA_INCLUDE) + "/" + header);
  EXPECT_TRUE(stream) << header;
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const std::regex pattern(result + "\\s+(" + prefix + "[A-Za-z0-9_]+)\\s*\\(");
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    names.push_back((*it)[1]);
  return names;
}

TEST(Api, ListsEveryFunctionOfTheDriver) {
  const auto names = Declared("cuda.h", "CUresult\\s+CUDAAPI", "cu");
  EXPECT_GT(names.size(), 400u);
  for (const std::string& name : names)
    EXPECT_TRUE(TheListing().functions.contains("driver " + name)) << name;
}

TEST(Api, ListsEveryFunctionOfTheRuntime) {
  const auto names = Declared("cuda_runtime_api.h", "cudaError_t\\s+CUDARTAPI", "cuda");
  EXPECT_GT(names.size(), 250u);
  for (const std::string& name : names)
    EXPECT_TRUE(TheListing().functions.contains("runtime " + name)) << name;
}

TEST(Api, TellsWhatWorks) {
  const auto works = [](const char* name) {
    return TheListing().functions.at(name)["works"].get<bool>();
  };
  EXPECT_TRUE(works("runtime cudaMalloc"));
  EXPECT_TRUE(works("runtime cudaGraphLaunch"));
  EXPECT_TRUE(works("driver cuLaunchKernelEx"));
  EXPECT_TRUE(works("driver cuStreamWaitValue32_v2"));
  EXPECT_FALSE(works("driver cuGreenCtxCreate"));
  EXPECT_EQ(TheListing().functions.at("driver cuGreenCtxCreate")["error"],
            "CUDA_ERROR_NOT_SUPPORTED");
  EXPECT_EQ(TheListing().functions.at("driver cuCtxGetExecAffinity")["error"],
            "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY");
}

TEST(Api, CountsAreThoseOfTheList) {
  for (const char* api : {"runtime", "driver"}) {
    std::size_t functions = 0, work = 0;
    for (const auto& [name, function] : TheListing().functions) {
      functions += function["api"] == api;
      work += function["api"] == api && function["works"].get<bool>();
    }
    EXPECT_EQ(TheListing().all[api]["functions"], functions);
    EXPECT_EQ(TheListing().all[api]["work"], work);
  }
}

}  // namespace
