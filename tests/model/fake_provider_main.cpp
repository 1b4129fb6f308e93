// fake_provider: the tests' provider as a process of its own, for tests that kill others.
//
//   fake_provider --port-file FILE [--log FILE] [--reply FILE]... [--protocol NAME]
//                 [--delay-ms A..B] [--faults PERCENT] [--seed N] [--piece BYTES]
//
// It speaks all protocols; --protocol only says which endpoint is printed beside the port. The
// reply is chosen among the files by a hash of the request's body, so that the same request always
// gets the same one; so are its delay and, with the number of times that it came, its fault. Runs
// until it is killed or its standard input is at its end (--stay: until it is killed).
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fake_provider.h"

using namespace allranks::model::testing;

namespace {

[[noreturn]] void Usage(const std::string& why) {
  std::fprintf(stderr, "fake_provider: %s\n", why.c_str());
  std::exit(2);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Usage("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::string port_file, protocol = "openai-chat";
  std::vector<std::string> replies;
  FakeProvider::Options options;
  int low = 0, high = 0;
  double faults = 0;
  unsigned long seed = 1, piece = 0;
  bool stay = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--stay") {
      stay = true;
      continue;
    }
    if (i + 1 >= argc) Usage(name + " needs a value");
    const std::string value = argv[++i];
    if (name == "--port-file") {
      port_file = value;
    } else if (name == "--log") {
      options.log = value;
    } else if (name == "--reply") {
      replies.push_back(ReadFile(value));
    } else if (name == "--protocol") {
      protocol = value;
    } else if (name == "--delay-ms") {
      if (std::sscanf(value.c_str(), "%d..%d", &low, &high) != 2) Usage("--delay-ms A..B");
    } else if (name == "--faults") {
      faults = std::atof(value.c_str());
    } else if (name == "--seed") {
      seed = std::strtoul(value.c_str(), nullptr, 10);
    } else if (name == "--piece") {
      piece = std::strtoul(value.c_str(), nullptr, 10);
    } else {
      Usage("unknown option " + name);
    }
  }
  if (port_file.empty()) Usage("--port-file is missing");
  if (replies.empty()) replies.push_back("Hello.");

  options.decide = [=](const Seen& seen) {
    static constexpr Fault kFaults[] = {Fault::kTooMany, Fault::kServerError, Fault::kOverloaded,
                                        Fault::kReset,   Fault::kHalf,        Fault::kInvalidJson,
                                        Fault::kUnended, Fault::kErrorInside};
    Answer answer;
    const auto pick = [&](unsigned long salt, std::size_t count, int repeat) {
      return static_cast<std::size_t>(Draw(seed + salt, seen.body, repeat) *
                                      static_cast<double>(count));
    };
    answer.text = replies[pick(1000, replies.size(), 0)];
    answer.tokens.input = seen.body.size() / 4;
    answer.tokens.output = answer.text.size() / 4;
    answer.delay_ms =
        low + static_cast<int>(pick(2000, static_cast<std::size_t>(high - low + 1), 0));
    answer.piece = piece;
    if (Draw(seed + 3000, seen.body, seen.repeat) * 100 < faults)
      answer.fault = kFaults[pick(4000, std::size(kFaults), seen.repeat)];
    return answer;
  };
  const FakeProvider provider(options);
  const Wire wire = protocol == "gemini" ? Wire::kGemini : Wire::kChat;
  // Whole or not at all: whoever waits for it reads it at once.
  const std::string beside = port_file + ".part";
  std::ofstream(beside) << provider.port() << '\n';
  if (std::rename(beside.c_str(), port_file.c_str()) != 0) Usage("cannot write " + port_file);
  std::printf("%s\n", provider.Endpoint(wire).c_str());
  std::fflush(stdout);
  char byte;
  while (stay || read(STDIN_FILENO, &byte, 1) > 0)
    if (stay) pause();
  return 0;
}
