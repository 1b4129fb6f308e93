// Keys never leave: what a model says, what is kept and what is shown goes through here.
#pragma once

#include <string>
#include <vector>

namespace allranks::model {

class Redactor {
 public:
  // Words of fewer than 12 characters are no secrets: servers on one's own machine are given
  // "EMPTY" or "none", and to take those out of a reply would spoil it.
  explicit Redactor(const std::vector<std::string>& secrets);

  // With "[key]" in place of each secret, also where JSON has a backslash before its slashes.
  // Shorten afterwards: half a key is not found.
  std::string operator()(std::string text) const;

 private:
  std::vector<std::string> words_;
};

// Values of the environment's variables that hold secrets by their names (*_KEY, *_TOKEN, *SECRET*,
// *PASSWORD*), and of `also` if it is set: what a program that we start may repeat.
std::vector<std::string> SecretsOfEnvironment(const std::string& also);

}  // namespace allranks::model
