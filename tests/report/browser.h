// A page around pages, shown by headless Chromium, that says what it saw.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/files.h"
#include "page_fixture.h"

namespace allranks::report {

// What `page` writes as SEEN{...}NEES, within some virtual milliseconds. It lies in `folder` and
// may look into pages there. Messages on the console are failures.
inline nlohmann::json SeenBy(const std::filesystem::path& folder, const std::string& page,
                             int milliseconds = 20'000) {
  std::ofstream(folder / "watcher.html") << page;
  // Reading a frame's document is allowed between files only on request.
  const std::string command = fmt::format(
      "chromium --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files "
      "--user-data-dir='{0}/profile' --enable-logging=stderr --virtual-time-budget={1} "
      "--window-size=1500,900 --dump-dom 'file://{0}/watcher.html' 2>'{0}/browser.log'",
      folder.string(), milliseconds);
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string dom;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) dom.append(buffer, n);
  pclose(pipe);
  std::string text = Between(dom, ">SEEN", "NEES");
  for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text.replace(at, std::string(from).size(), to);
  const std::string log = ReadWhole(folder / "browser.log").value_or("");
  EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
  if (getenv("ALLRANKS_SHOW") != nullptr) fmt::print("{}\n", text);
  nlohmann::json seen = nlohmann::json::parse(text, nullptr, false);
  EXPECT_FALSE(seen.is_discarded()) << dom.substr(0, 2000) << log;
  return seen;
}

}  // namespace allranks::report
