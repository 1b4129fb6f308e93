// A Core above a FakeMachine, and clients of it: root processes, children, threads, and the one
// kernel that the fake knows.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/core.h"
#include "tests/server/client.h"
#include "tests/server/fake_machine.h"

namespace allranks::server {

class CoreTest : public ::testing::Test {
 protected:
  CoreTest() {
    auto machine = std::make_unique<FakeMachine>();
    fake = machine.get();
    CoreOptions options;
    options.log = [this](const std::string& line) { log.push_back(line); };
    core = std::make_unique<Core>(std::move(machine), std::move(options));
  }

  // A new root process, its first thread running.
  std::unique_ptr<Client> Root(pid_t pid) {
    auto client = std::make_unique<Client>(*core, pid);
    token = client->Call(wire::Hello{}).token;
    return client;
  }
  std::unique_ptr<Client> Child(pid_t pid, std::uint64_t child_token) {
    auto client = std::make_unique<Client>(*core, pid);
    wire::Hello hello;
    hello.kind = wire::Hello::Kind::kChild;
    hello.token = child_token;
    client->Ask(hello);
    return client;
  }
  std::unique_ptr<Client> Thread(pid_t pid, std::uint64_t process, std::uint64_t number) {
    auto client = std::make_unique<Client>(*core, pid);
    wire::Hello hello;
    hello.kind = wire::Hello::Kind::kThread;
    hello.token = process;
    hello.thread = number;
    client->Ask(hello);
    return client;
  }
  std::uint64_t Kernel(Client& client) {
    wire::PutImage image;
    image.image = 1;
    image.total = 4;
    image.bytes.resize(4);
    client.Call(image);
    wire::LoadModule load;
    load.image = 1;
    wire::GetKernel get;
    get.module = client.Call(load).module;
    get.name = "store";
    return client.Call(get).kernel;
  }
  static wire::Launch StoreKernel(std::uint64_t kernel, std::uint64_t address, std::uint32_t value,
                                  std::uint32_t us, bool forever = false) {
    wire::Launch launch;
    launch.kernel = kernel;
    launch.grid.x = us;
    launch.grid.y = forever ? 2 : 1;
    launch.params.resize(12);
    std::memcpy(launch.params.data(), &address, 8);
    std::memcpy(launch.params.data() + 8, &value, 4);
    return launch;
  }

  FakeMachine* fake = nullptr;
  std::unique_ptr<Core> core;
  std::vector<std::string> log;
  std::uint64_t token = 0;
};

}  // namespace allranks::server
