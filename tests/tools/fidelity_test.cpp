// tools/fidelity: what counts as an error, who is compared with whom, and which tables of published
// points are refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fidelity/points.h"
#include "fidelity/score.h"

namespace allranks::fidelity {
namespace {

Experiment Make(const std::string& name, bool fitted, std::vector<Point> points) {
  Experiment experiment;
  experiment.name = name;
  experiment.platform = "P";
  experiment.operation = "sum";
  experiment.bytes_per_size = 1;
  experiment.fitted = fitted;
  experiment.points = std::move(points);
  return experiment;
}

Point At(double size, double published, double simulated, bool fitted = false) {
  Point point;
  point.size = size;
  point.published = published;
  point.simulated = simulated;
  point.fitted = fitted;
  return point;
}

TEST(ScoreTest, FittedSizesDoNotCountAndExperimentsCountOnce) {
  Points points;
  points.experiments = {
      Make("a", true, {At(1, 10, 10, true), At(2, 10, 11), At(4, 10, 7)}),
      Make("b", false, {At(1, 10, 15)}),
      Make("c", false, {At(1, 20, 22), At(2, 20, 18), At(4, 20, 20.0)}),
  };
  const Score score = ScoreOf(points);
  EXPECT_EQ(score.points, 7);
  EXPECT_EQ(score.fitted, 1);
  EXPECT_EQ(score.held_out, 2);
  EXPECT_NEAR(score.other_sizes.value, 0.20, 1e-9);  // 10 % and 30 %
  // 50 % of one experiment and a mean of 6.7 % of the other.
  EXPECT_NEAR(score.never_fitted.value, (0.5 + 0.2 / 3) / 2, 1e-9);
}

TEST(ScoreTest, OnlySchemesThatDifferByAFifthAreOrdered) {
  Points points;
  points.experiments = {
      Make("slow", false, {At(1, 20, 9)}),
      Make("fast", false, {At(1, 10, 10)}),
      Make("near", false, {At(1, 10.5, 12)}),
  };
  const Score score = ScoreOf(points);
  ASSERT_EQ(score.pairs.size(), 2u);  // fast and near differ by 5 % only
  EXPECT_EQ(score.order, 0);          // the node has the slow one before both
}

class PointsTest : public ::testing::Test {
 protected:
  PointsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "points-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream(folder_ + "/p.toml") << "[latency]\nl2 = 5\n";
  }
  ~PointsTest() override { std::filesystem::remove_all(folder_); }

  std::string MessageFor(const std::string& text) const {
    std::ofstream(folder_ + "/points.toml") << text;
    const auto points = LoadPoints(folder_ + "/points.toml", folder_);
    return points ? "accepted" : points.error().message;
  }
  static std::string Entry(const std::string& name, bool fitted) {
    return "[[experiment]]\nname = \"" + name +
           "\"\nplatform = \"P\"\nprofile = \"p\"\nprogram = \"x\"\nvariant = \"v\"\noperation = "
           "\"o\"\nsize_unit = \"B\"\nbytes_per_size = 1\nsource = \"s\"\n" +
           (fitted ? "fitted = true\n" : "") + "points = [[1, 2.5], [2, 3.5" +
           (fitted ? ", \"fit\"" : "") + "]]\n";
  }
  static std::string Constant(const std::string& on) {
    return "[[parameter]]\nprofile = \"p\"\nkey = \"latency.l2\"\nfitted_on = \"`" + on + "`\"\n";
  }

  std::string folder_;
};

TEST_F(PointsTest, AFairTableIsAccepted) {
  EXPECT_EQ(MessageFor(Entry("a", true) + Entry("b", false) + Constant("a")), "accepted");
}

TEST_F(PointsTest, ConstantsAreFittedOnFittedExperimentsOnly) {
  EXPECT_NE(MessageFor(Entry("a", true) + Entry("b", false) + Constant("b"))
                .find("fitted on b, which is no fitted experiment"),
            std::string::npos);
}

TEST_F(PointsTest, MoreThanHalfMayNotBeFitted) {
  EXPECT_NE(MessageFor(Entry("a", true) + Entry("b", true) + Entry("c", false))
                .find("2 of 3 experiments are fitted"),
            std::string::npos);
}

TEST_F(PointsTest, AHeldOutExperimentHasNoFittedSize) {
  std::string text = Entry("b", false);
  text.replace(text.find("2.5"), 3, "2.5, \"fit\"");
  EXPECT_NE(MessageFor(text).find("held-out experiment has a fitted size"), std::string::npos);
}

TEST(ShippedPointsTest, AreFair) {
  const auto points = LoadPoints(ALLRANKS_SOURCE_DIR "/tools/fidelity/points.toml",
                                 ALLRANKS_SOURCE_DIR "/profiles");
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_GE(points->experiments.size(), 12u);
}

}  // namespace
}  // namespace allranks::fidelity
