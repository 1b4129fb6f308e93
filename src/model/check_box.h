// `./check [FILE]`: how a command has a file judged on the open cases while it works. The script
// puts a copy into a folder; a thread of ours finds it, asks the judge, and puts the answer beside
// it. Files are the only channel: the command may be in any namespace.
//
// What lies in the folder is the command's: it is opened without following links, only plain files
// of a bounded size are read, and answers are new files.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/stop.h"
#include "wire/frame.h"

namespace allranks::model {

inline constexpr int kMostChecks = 50;  // of one reply

// A plain file's text; fails for links, pipes, devices and folders, and cuts at `limit` bytes.
Result<std::string> ReadPlain(int folder, const char* name, std::size_t limit);

class CheckBox {
 public:
  using Check = std::function<std::string(const std::string& source, const Stop& stop)>;

  // Writes FOLDER/check and FOLDER/.allranks/.
  static Result<std::unique_ptr<CheckBox>> Make(const std::filesystem::path& folder, Check check);
  ~CheckBox();  // stops a check that is under way

  int answered() const { return answered_.load(); }

 private:
  CheckBox(wire::Fd box, Check check);
  void Serve();
  void Answer(const std::string& name);

  wire::Fd box_;
  Check check_;
  Stop over_;
  std::atomic<int> answered_ = 0;
  std::thread thread_;
};

}  // namespace allranks::model
