// Progress on a terminal: what is drawn, that it is gone at the end, and that files and pipes get
// none of it. Nothing here waits for a time: it waits for a text, at most as long as a test may
// run.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cli/meter.h"
#include "cli/progress.h"

namespace allranks::cli {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 100;
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, &size), 0);
    setenv("TERM", "xterm", 1);
  }
  ~ProgressTest() override {
    close(master_);
    close(slave_);
  }

  // Whether the terminal comes to show the text.
  bool Shows(const std::string& text) {
    while (seen_.find(text) == std::string::npos) {
      pollfd wait{master_, POLLIN, 0};
      char buffer[4096];
      if (poll(&wait, 1, 60'000) != 1) return false;
      const ssize_t got = read(master_, buffer, sizeof buffer);
      if (got <= 0) return false;
      seen_.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }

  Meter::Form FormOf(int fd) const {
    return {.what = "judging", .unit = "cases", .fd = fd, .delay = std::chrono::milliseconds(0)};
  }

  int master_ = -1, slave_ = -1;
  std::string seen_;
};

TEST_F(ProgressTest, AMeterCountsAndIsGoneAtTheEnd) {
  {
    Meter meter(FormOf(slave_));
    meter.AddTotal(3);
    meter.AddTotal(1);
    EXPECT_TRUE(Shows("judging: 0/4 cases |")) << seen_;
    meter.Done("pass");
    meter.Done("pass");
    meter.Done("race");
    meter.Now("timed.w8.n4096");
    EXPECT_TRUE(Shows("judging: 3/4 cases, 2 pass, 1 race | ")) << seen_;
    EXPECT_TRUE(Shows(" left | timed.w8.n4096")) << seen_;
    meter.Print([&] { EXPECT_EQ(write(slave_, "a line\n", 7), 7); });
    EXPECT_TRUE(Shows("\r\x1b[2Ka line\r\n\r\x1b[2Kjudging")) << seen_;
    seen_.clear();
    meter.Now(std::string(500, 'x') + "\x1b[31m\n");
    EXPECT_TRUE(Shows("xxx")) << seen_;
  }
  EXPECT_EQ(write(slave_, "END", 3), 3);
  EXPECT_TRUE(Shows("\r\x1b[2KEND")) << seen_;
  // Each drawing fits a line of the terminal, whatever is said.
  EXPECT_EQ(seen_.find('\n'), std::string::npos);
  EXPECT_EQ(seen_.find("\x1b[31m"), std::string::npos);
  for (std::size_t at = seen_.find("judging"); at != std::string::npos;
       at = seen_.find("judging", at + 1))
    EXPECT_LT(std::min(seen_.find('\r', at), seen_.size()) - at, 105u);  // "..." may be 3 bytes
}

TEST_F(ProgressTest, OnlyATerminalIsDrawnOn) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Meter meter(FormOf(ends[1]));
    meter.AddTotal(1);
    meter.Done("pass");
    meter.Print([&] { EXPECT_EQ(write(ends[1], "line\n", 5), 5); });
  }
  setenv("TERM", "dumb", 1);
  {
    Meter meter(FormOf(slave_));
    meter.AddTotal(1);
    meter.Print([] {});
  }
  close(ends[1]);
  char buffer[100];
  EXPECT_EQ(read(ends[0], buffer, sizeof buffer), 5) << "the line alone";
  close(ends[0]);
  pollfd wait{master_, POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 0);
}

TEST_F(ProgressTest, ARunCountsQueueAndWorkApart) {
  const int before = dup(STDERR_FILENO);
  ASSERT_EQ(dup2(slave_, STDERR_FILENO), STDERR_FILENO);
  {
    Progress progress(Progress::Style::kTerminal, false, 5);
    progress.OnBegin(10, 2, 0);
    for (int i = 0; i < 3; ++i) progress.OnAsk(true);
    for (int i = 0; i < 3; ++i) progress.OnJudge(true);
    progress.OnJudging(true);
    EXPECT_TRUE(Shows("2/10 samples done")) << seen_;
    EXPECT_TRUE(Shows("2 queued, 3 waiting for the model, 2 waiting for a judge, 1 being judged"))
        << seen_;
    progress.OnJudging(false);
    progress.OnJudge(false);
    progress.OnAsk(false);
    campaign::Sample sample;
    sample.model = "m";
    sample.problem = "p";
    progress.OnSample(sample);
    EXPECT_TRUE(Shows("3/10 samples done")) << seen_;
    EXPECT_TRUE(Shows("3 queued, 2 waiting for the model, 2 waiting for a judge, 0 being judged"))
        << seen_;
  }
  dup2(before, STDERR_FILENO);
  close(before);
}

}  // namespace
}  // namespace allranks::cli
