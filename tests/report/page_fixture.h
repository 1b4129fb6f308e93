// What tests of reports share: a folder of their own, a hostile run, and looking into a page.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "campaign/record.h"
#include "made_run.h"
#include "report/report.h"

namespace allranks::report {

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "allranks-page-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline bool Installed(const std::string& program) {
  const char* path = getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    if (access((folders.substr(at, end - at) + "/" + program).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

inline std::string Between(const std::string& text, const std::string& from,
                           const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "";
  const std::size_t end = text.find(to, at + from.size());
  return text.substr(at + from.size(), end - at - from.size());
}

inline std::string DataOf(const std::string& page) {
  return Between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
}

inline Options Quick() {
  Options options;
  options.resamples = 200;
  return options;
}

inline constexpr char kHostile[] =
    "</script><script>document.documentElement.dataset.pwned=1</script>"
    "<img src=x onerror=document.documentElement.dataset.pwned=1>'\"`{@x}%s\\n$(id)&lt;&#39;";

// A run whose model, problem, title and every text are hostile.
inline campaign::Run HostileRun(const std::filesystem::path& folder) {
  campaign::Run run = MakeRun(folder, {.models = 2, .problems = 4, .samples = 2, .rounds = 2});
  run.settings.models[0].name = kHostile;
  run.settings.problems[0].title = kHostile;
  run.settings.problems[0].level = kHostile;
  run.settings.problems[1].library = "it's `touch pwned`; system('touch pwned') %d {/*2 x} \\";
  for (campaign::Sample& sample : run.samples) {
    if (sample.model == "atlas-5") sample.model = kHostile;
    for (campaign::Round& round : sample.rounds) {
      round.text = kHostile;
      round.source_hash = "1";
      const std::filesystem::path own =
          folder / campaign::RoundFolder(sample.model, sample.problem, sample.sample, round.round);
      std::filesystem::create_directories(own);
      for (const char* name : {"source.cu", "compiler.log", "feedback.md", "reply.txt"})
        std::ofstream(own / name) << "// >>> edit\n" << kHostile << "\n\xff\xfe\0x\n";
    }
  }
  std::ofstream(folder / "problems" / run.settings.problems[0].slug / "statement.md")
      << "# " << kHostile << "\n\n| a |\n|---|\n| " << kHostile << " |\n\n```\n"
      << kHostile;
  return run;
}

}  // namespace allranks::report
