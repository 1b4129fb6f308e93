// Holds the folders of src to their order of dependence: a folder may include from itself and from
// those before it in kOrder; shim, which is loaded into other people's programs, only from base and
// wire. Within node the same holds for its rooms (kRooms), subfolder by subfolder. Reads the
// #include "folder/..." lines of every file, so it also sees what is not built here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kOrder = {"base",   "ptx",     "node",  "wire",  "server",
                                         "shim",   "problem", "judge", "model", "campaign",
                                         "report", "serve",   "cli"};
const std::map<std::string, std::set<std::string>> kOnly = {{"shim", {"base", "wire"}}};

// The subfolders of node in their order; "" is node itself, the interface.
const std::vector<std::string> kRooms = {"",      "hardware", "code", "alu",    "decode",
                                         "state", "check",    "exec", "machine"};

// The room of a path that begins with "node/".
std::string RoomOf(const std::string& path) {
  const std::size_t begin = path.find('/') + 1;
  const std::size_t end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

bool RoomMayInclude(const std::string& from, const std::string& to) {
  const auto from_at = std::find(kRooms.begin(), kRooms.end(), from);
  const auto to_at = std::find(kRooms.begin(), kRooms.end(), to);
  return from_at != kRooms.end() && to_at <= from_at;
}

bool MayInclude(const std::string& from, const std::string& to) {
  if (from == to) return true;
  if (auto only = kOnly.find(from); only != kOnly.end()) return only->second.contains(to);
  const auto from_at = std::find(kOrder.begin(), kOrder.end(), from);
  const auto to_at = std::find(kOrder.begin(), kOrder.end(), to);
  return from_at != kOrder.end() && to_at < from_at;
}

bool IsSource(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".h", ".hpp", ".cuh", ".cpp", ".cc",
                                                    ".c", ".cu",  ".inc", ".def"};
  return kExtensions.contains(path.extension().string());
}

// What is wrong with one line of the file `of` (its path from src/), or nothing. A quoted include
// must be written from src/ and lead to a file there.
std::string FaultOf(const std::string& of, const std::string& line, const fs::path& src) {
  static const std::regex kInclude("^\\s*#\\s*include\\s+\"([^\"]+)\".*");
  std::smatch match;
  if (!std::regex_match(line, match, kInclude)) return "";
  const std::string path = match[1];
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) return "\"" + path + "\" is not written from src/";
  const std::string folder = of.substr(0, of.find('/')), to = path.substr(0, slash);
  if (std::find(kOrder.begin(), kOrder.end(), to) == kOrder.end()) {
    return "\"" + path + "\" is not in a folder of src/";
  }
  if (!MayInclude(folder, to)) return folder + " may not include from " + to;
  if (folder == "node" && to == "node" && !RoomMayInclude(RoomOf(of), RoomOf(path))) {
    return "room '" + RoomOf(of) + "' of node may not include from '" + RoomOf(path) + "'";
  }
  if (!fs::exists(src / path)) return "\"" + path + "\" does not exist";
  return "";
}

const fs::path kSrc = fs::path(ALLRANKS_SOURCE_DIR) / "src";

TEST(LayeringTest, EveryFolderIsInTheOrder) {
  for (const auto& entry : fs::directory_iterator(kSrc)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    EXPECT_NE(std::find(kOrder.begin(), kOrder.end(), name), kOrder.end())
        << "src/" << name << " has no place in the order of dependence";
  }
}

TEST(LayeringTest, EveryFolderIsInTheMap) {
  std::ifstream in(kSrc / "README.md");
  const std::string map((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (const auto& entry : fs::directory_iterator(kSrc)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    EXPECT_NE(map.find("`" + name + "`"), std::string::npos)
        << "src/README.md does not mention " << name;
  }
}

TEST(LayeringTest, EveryRoomIsInTheOrderAndInTheMap) {
  std::ifstream in(kSrc / "node" / "README.md");
  const std::string map((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (const auto& entry : fs::directory_iterator(kSrc / "node")) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    EXPECT_NE(std::find(kRooms.begin(), kRooms.end(), name), kRooms.end())
        << "src/node/" << name << " has no place in the order of dependence";
    EXPECT_NE(map.find("| `" + name + "` |"), std::string::npos)
        << "src/node/README.md does not mention " << name;
  }
}

TEST(LayeringTest, NoFolderIncludesFromALaterOne) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSrc)) {
    if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
    ++files;
    const fs::path relative = entry.path().lexically_relative(kSrc);
    std::ifstream in(entry.path());
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      const std::string fault = FaultOf(relative.string(), line, kSrc);
      EXPECT_EQ(fault, "") << "src/" << relative.string() << ":" << number << ": " << fault;
    }
  }
  EXPECT_GT(files, 0);
}

TEST(LayeringTest, TheRuleItself) {
  EXPECT_TRUE(MayInclude("node", "ptx"));
  EXPECT_TRUE(MayInclude("node", "node"));
  EXPECT_FALSE(MayInclude("ptx", "node"));
  EXPECT_FALSE(MayInclude("base", "cli"));
  EXPECT_TRUE(MayInclude("shim", "wire"));
  EXPECT_FALSE(MayInclude("shim", "node"));
  EXPECT_TRUE(MayInclude("server", "wire"));
  EXPECT_EQ(FaultOf("ptx/x.h", "#include \"node/time.h\"", kSrc), "ptx may not include from node");
  EXPECT_EQ(FaultOf("ptx/x.h", "#include \"module.h\"", kSrc),
            "\"module.h\" is not written from src/");
  EXPECT_EQ(FaultOf("ptx/x.h", "#include <vector>", kSrc), "");
  EXPECT_EQ(FaultOf("node/x.h", "#  include \"base/nonexistent.h\"", kSrc),
            "\"base/nonexistent.h\" does not exist");
  EXPECT_TRUE(RoomMayInclude("exec", "check"));
  EXPECT_TRUE(RoomMayInclude("check", ""));
  EXPECT_EQ(FaultOf("node/check/x.cpp", "#include \"node/exec/simulator.h\"", kSrc),
            "room 'check' of node may not include from 'exec'");
  EXPECT_EQ(FaultOf("node/x.cpp", "#include \"node/hardware/profile.h\"", kSrc),
            "room '' of node may not include from 'hardware'");
}

}  // namespace
