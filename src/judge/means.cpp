#include "judge/means.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "judge/cgroup.h"
#include "judge/sandbox.h"
#include "judge/spawn.h"

namespace allranks::judge {

namespace {

std::string WhatIsMissing() {
  if (FindBubblewrap().empty()) {
    return "bubblewrap (bwrap) is not installed: `apt-get install bubblewrap`";
  }
  const auto number = [](const char* path, long otherwise) {
    std::ifstream in(path);
    long value = 0;
    return in >> value ? value : otherwise;
  };
  if (number("/proc/sys/user/max_user_namespaces", 1) == 0) {
    return "user namespaces are disabled: `sysctl user.max_user_namespaces=10000` as root";
  }
  if (number("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0) {
    return "user namespaces are not available to unprivileged users: `sysctl "
           "kernel.unprivileged_userns_clone=1` as root";
  }
  return "";
}

}  // namespace

std::string Remedy(const std::string& said) {
  if (said.find("namespace") == std::string::npos && said.find("uid map") == std::string::npos) {
    return "";
  }
  return std::string(
             " (unprivileged users must be allowed to create user namespaces: sysctl "
             "user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
             "kernel.apparmor_restrict_unprivileged_userns=0; in a container: a seccomp profile "
             "that "
             "allows unshare and mount)") +
         TrustedRemedy();
}

std::string TrustedRemedy() {
  return "; `allranks judge --trusted` judges code of your own without sandboxes";
}

const SandboxMeans& Means() {
  static const SandboxMeans kMeans = [] {
    SandboxMeans found;
    const int version = OurCgroupPlaces().version;
    found.cgroup = version == 0 ? "none" : fmt::format("v{}", version);
    found.drops_user = geteuid() == 0;
    found.missing = WhatIsMissing();
    return found;
  }();
  return kMeans;
}

}  // namespace allranks::judge
