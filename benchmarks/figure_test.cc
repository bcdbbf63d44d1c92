#include "benchmarks/figure.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/scratch.h"

namespace palmshed::benchmarks {
namespace {

const Heading kHeading{.measure = "growth", .axis = "files", .unit = "us"};

TEST(Figure, HasTheMedianAndTheSpread) {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(i);  // NOLINT: a handful
  const Figure figure = Spread(kHeading, "exec", 10, samples);
  EXPECT_EQ(figure.low, 10);
  EXPECT_EQ(figure.median, 50);
  EXPECT_EQ(figure.high, 95);
  EXPECT_EQ(figure.samples, 101);
}

TEST(Figure, IsWrittenWithPeersPresentAndAbsent) {
  Figure figure = Single(kHeading, "exec", 10, 7);
  figure.ratios = {{"vfork+exec", {.value = 1.5, .low = 1, .high = 2}}};
  const std::vector<Figure> figures{
      figure, Single({.measure = "ramp", .axis = "", .unit = ""}, "most", 0, 3)};
  const std::vector<Peer> peers{{.name = "there", .command = {"/bin/there", "run"}},
                                {.name = "gone", .absent = "not installed"}};
  const std::string path = ScratchDirectory() + "/figures.json";
  WriteJson(ThisMachine(), peers, figures, path);
  std::ifstream file(path);
  const boost::json::value document = boost::json::parse(
      std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
  EXPECT_EQ(document.at("peers").at(0).at("command").at(1), "run");
  EXPECT_EQ(document.at("peers").at(1).at("absent"), "not installed");
  const boost::json::value& first = document.at("figures").at(0);
  EXPECT_EQ(first.at("median"), 7.0);
  EXPECT_EQ(first.at("at"), 10.0);
  EXPECT_EQ(first.at("ratios").at("vfork+exec").at("value"), 1.5);
  EXPECT_FALSE(document.at("figures").at(1).as_object().contains("axis"));
}

}  // namespace
}  // namespace palmshed::benchmarks
