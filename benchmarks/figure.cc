#include "benchmarks/figure.h"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

namespace json = boost::json;

json::object ToJson(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"kernel", machine.kernel},
          {"distribution", machine.distribution},
          {"user", machine.user}};
}

json::object ToJson(const Peer& peer) {
  json::object object{{"name", peer.name}};
  if (peer.command.empty()) {
    object["absent"] = peer.absent;
  } else {
    object["command"] = json::array(peer.command.begin(), peer.command.end());
  }
  if (!peer.failures.empty()) {
    object["failures"] = json::array(peer.failures.begin(), peer.failures.end());
  }
  return object;
}

json::object ToJson(const Figure& figure) {
  json::object ratios;
  for (const auto& [base, ratio] : figure.ratios) {
    ratios[base] = {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
  }
  json::object object{{"measure", figure.measure}, {"name", figure.name},
                      {"unit", figure.unit},       {"samples", figure.samples},
                      {"low", figure.low},         {"median", figure.median},
                      {"high", figure.high},       {"ratios", std::move(ratios)}};
  if (!figure.axis.empty()) {
    object["axis"] = figure.axis;
    object["at"] = figure.at;
  }
  if (!figure.note.empty()) object["note"] = figure.note;
  return object;
}

template <class T>
json::array AllToJson(std::span<const T> all) {
  json::array array;
  for (const T& one : all) array.push_back(ToJson(one));
  return array;
}

std::string Place(const Figure& figure) {
  return figure.axis.empty() ? "" : fmt::format("{:.0f} {}", figure.at, figure.axis);
}

std::string Ratios(const Figure& figure) {
  std::string text;
  for (const auto& [base, ratio] : figure.ratios) {
    text += fmt::format("  {:.2f} ({:.2f}-{:.2f}) x {}", ratio.value, ratio.low, ratio.high, base);
  }
  return figure.note.empty() ? text : text + "  " + figure.note;
}

}  // namespace

Figure Single(const Heading& heading, const std::string& name, double at, double value) {
  return Spread(heading, name, at, {value});
}

Figure Spread(const Heading& heading, const std::string& name, double at,
              const std::vector<double>& samples) {
  // Samples are told apart by their order alone, so that any unit will do.
  std::vector<Micros> sorted;
  sorted.reserve(samples.size());
  for (const double sample : samples) sorted.emplace_back(sample);
  return {.measure = heading.measure,
          .name = name,
          .axis = heading.axis,
          .at = at,
          .unit = heading.unit,
          .low = Quantile(sorted, 0.1).count(),
          .median = Median(sorted).count(),
          .high = Quantile(sorted, 0.95).count(),
          .samples = static_cast<int>(samples.size())};
}

void Print(std::span<const Figure> figures) {
  std::string measure;
  for (const Figure& figure : figures) {
    if (figure.measure != measure) fmt::print("\n{}\n", figure.measure);
    measure = figure.measure;
    fmt::print("{:<34} {:>22} {:>10.1f} {:<7}{}\n", figure.name, Place(figure), figure.median,
               figure.unit, Ratios(figure));
  }
}

void WriteJson(const Machine& machine, std::span<const Peer> peers, std::span<const Figure> figures,
               const std::string& path) {
  const json::object document{
      {"machine", ToJson(machine)}, {"peers", AllToJson(peers)}, {"figures", AllToJson(figures)}};
  std::ofstream file(path);
  file << json::serialize(document) << '\n';
  if (!file.flush()) DieErrno("cannot write " + path);
}

}  // namespace palmshed::benchmarks
