// Protocol programs (tests/protocols): one file is a protocol with its variants, chosen by -DBUG=n.
// Comment lines at the top say what each is:
//   // EXPECT n kinds: why    what is wrong with variant n: kinds of findings, or hang, value
//   (wrong
//                             results are permitted), hostrace; none, portability: it is correct
//   // MISSED n: why          variant n is wrong and not found today: it is counted, and no failure
//   // RANKS n                it runs as n processes (exec --ranks)
//   // ARGS ...               arguments of the program, in every variant
// Variant 0 is correct.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace allranks::protocols {

struct Variant {
  int number = 0;
  std::string kinds = "none", why;
  bool missed = false;  // as is known
  // Nothing may count against it.
  bool correct() const;
  // It relies on more than PTX promises: either verdict is right.
  bool open() const;
};

struct Protocol {
  std::filesystem::path path;
  std::string folder, name;  // of the file, without its end
  int ranks = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> includes;  // lines `#include <...>`, sorted
  std::vector<Variant> variants;
};

// All .cu files at and below these paths, by name.
std::vector<Protocol> Find(const std::vector<std::filesystem::path>& paths);

// One translation unit that is all variants of these protocols; its first argument chooses one:
// FOLDER/NAME:NUMBER. nvcc spends most of a small program's time on headers, which are paid for
// once.
std::string Joined(const std::vector<const Protocol*>& protocols);

// Protocols with the same headers, a few at a time.
std::vector<std::vector<const Protocol*>> Groups(const std::vector<Protocol>& protocols);

}  // namespace allranks::protocols
