// `allranks ptx` on texts whose forms are known. What it says of real programs is
// tests/ptx/coverage.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

namespace fs = std::filesystem;

constexpr const char* kText = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 s[48];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %pm3;
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, 1;
  nosuch.v2.u32 %r3, %r1;
  nosuch.v2.u32 %r3, %r3;
  st.shared.u32 [s], %r3;
  ret;
}
)";

class PtxCommand : public ::testing::Test {
 protected:
  PtxCommand() {
    std::string pattern = (fs::temp_directory_path() / "allranks-ptx-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    std::ofstream(folder + "/a.ptx") << kText;
    std::ofstream(folder + "/broken.ptx") << ".version 9.0\n.target sm_90\n.entry k() {\n"
                                             "  @p only.here.u32 %r1, ((;\n}\n";
    std::ofstream(folder + "/none") << std::string(
        "\x7f"
        "ELF\0\0\0\0 nothing to see",
        30);
  }
  ~PtxCommand() override { fs::remove_all(folder); }

  int Run(const std::string& arguments) {
    const std::string command =
        "cd " + folder + " && " ALLRANKS_COMMAND " ptx " + arguments + " 2>errors";
    FILE* pipe = popen(command.c_str(), "r");
    output.clear();
    if (pipe == nullptr) return -1;
    std::array<char, 4096> buffer;
    while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
      output.append(buffer.data(), count);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string folder, output;
};

TEST_F(PtxCommand, ListsKernelsAndWhatTheyLack) {
  EXPECT_EQ(Run("a.ptx"), 0);
  EXPECT_NE(output.find("kernel k: about "), std::string::npos) << output;
  EXPECT_NE(output.find("48 bytes shared"), std::string::npos) << output;
  EXPECT_NE(output.find("8 instructions"), std::string::npos) << output;
  EXPECT_NE(output.find("unsupported: nosuch.v2.u32 (x2), first at a.ptx:12"), std::string::npos)
      << output;
}

TEST_F(PtxCommand, CountsDistinctForms) {
  // mov.u32 of two special registers, add.u32, nosuch.v2.u32, st.shared.u32, ret.
  EXPECT_EQ(Run("--coverage a.ptx a.ptx"), 0);
  EXPECT_NE(
      output.find("6 distinct instruction forms: 100.00 % parsed (6), 66.67 % executable (4)"),
      std::string::npos)
      << output;
  EXPECT_NE(output.find("not executable: mov.u32 %pm3 (2 of 2)"), std::string::npos);
  EXPECT_NE(output.find("not executable: nosuch.v2.u32 (4 of 4), first at a.ptx:12"),
            std::string::npos);
  EXPECT_EQ(Run("--coverage --min-executable 66 a.ptx"), 0);
  EXPECT_EQ(Run("--coverage --min-executable 67 a.ptx"), 1);
}

TEST_F(PtxCommand, FormsOfATextThatCannotBeParsedCount) {
  EXPECT_EQ(Run("--coverage a.ptx broken.ptx"), 1);
  EXPECT_NE(output.find("7 distinct instruction forms: 85.71 % parsed (6)"), std::string::npos)
      << output;
  EXPECT_NE(output.find("not parsed: only.here.u32 (x1)"), std::string::npos) << output;
}

TEST_F(PtxCommand, Json) {
  ASSERT_EQ(Run("--json a.ptx"), 0);
  const nlohmann::json json = nlohmann::json::parse(output, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["kernels"][0]["name"], "k");
  EXPECT_EQ(json["kernels"][0]["shared_bytes"], 48);
  EXPECT_EQ(json["coverage"]["forms"], 6);
  EXPECT_EQ(json["coverage"]["executable"], 4);
  EXPECT_EQ(json["coverage"]["not_executable"][1]["form"], "nosuch.v2.u32");
}

TEST_F(PtxCommand, FilesWithoutPtxAreErrors) {
  EXPECT_EQ(Run("none"), 1);
  EXPECT_EQ(Run("missing.ptx"), 2);
  EXPECT_EQ(Run(""), 2);
}

}  // namespace
