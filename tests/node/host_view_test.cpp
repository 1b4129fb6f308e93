// A host's view of pinned memory: what it is shown, and what is taken from it.
#include "node/state/host_view.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace allranks::node {
namespace {

std::vector<std::byte> Bytes(const std::string& text) {
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}
std::string Text(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text.push_back(static_cast<char>(b));
  return text;
}

std::vector<std::pair<std::size_t, std::string>> Taken(HostView& view) {
  std::vector<std::pair<std::size_t, std::string>> all;
  view.Take(
      [&](std::size_t at, std::span<const std::byte> bytes) { all.emplace_back(at, Text(bytes)); });
  return all;
}

TEST(HostView, ShowsWhatHasChanged) {
  std::vector<std::byte> seen = Bytes("abcdef");
  HostView view(seen);
  view.Show(Bytes("abXdeY"));
  EXPECT_EQ(Text(seen), "abXdeY");
  EXPECT_TRUE(Taken(view).empty()) << "the host has written nothing";
}

TEST(HostView, TakesWhatTheHostHasWritten) {
  std::vector<std::byte> seen = Bytes(std::string(200, '.'));
  HostView view(seen);
  seen[3] = seen[4] = std::byte{'h'};
  seen[150] = std::byte{'i'};
  using Expected = std::vector<std::pair<std::size_t, std::string>>;
  EXPECT_EQ(Taken(view), (Expected{{3, "hh"}, {150, "i"}}));
  EXPECT_TRUE(Taken(view).empty()) << "once is enough";
}

TEST(HostView, AStoreMeanwhileIsKept) {
  std::vector<std::byte> seen = Bytes("abcd");
  HostView view(seen);
  seen[0] = std::byte{'H'};  // not taken yet
  view.Show(Bytes("abcD"));
  EXPECT_EQ(Text(seen), "HbcD");
  ASSERT_EQ(Taken(view).size(), 1u);
}

}  // namespace
}  // namespace allranks::node
